"""The commands: arguments and printing, one file each, imported when chosen (see ``cli.COMMANDS``)."""
