"""`starforge submit --batch`: many jobs from one file, sent so that a cut doubles and loses none."""
