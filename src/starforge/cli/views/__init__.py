"""What a terminal shows: functions from the API's JSON to Rich. Text from outside is never read as markup."""
