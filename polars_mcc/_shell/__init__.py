"""The command line: a command per verb, inputs, SQL, outputs and stores of counts."""
