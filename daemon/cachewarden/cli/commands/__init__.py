"""The commands: each asks the house and shows what it answers."""
