"""Show results and running queries: tables, charts, arrays, a progress bar."""
