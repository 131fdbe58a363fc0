"""The command line: inputs, SQL, outputs, stored counts, and a command per verb."""
