"""`python -m polars_mcc`: the command `polars-mcc`."""

from polars_mcc._cli.polars_mcc_command import main

if __name__ == "__main__":
    main()
