"""The `starforge` command."""

from starforge.cli import client_verbs, server_verbs, token_verbs
from starforge.cli.exits import EPILOG
from starforge.cli.root import Root, new_app

app = new_app(cls=Root, help="Train on shared GPUs: submit jobs to StarForge, follow them, or run it.", epilog=EPILOG)
client_verbs.register(app)
server_verbs.register(app)
token_verbs.register(app)


def main() -> None:
    app(prog_name="starforge")


if __name__ == "__main__":
    main()
