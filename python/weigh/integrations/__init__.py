"""Other tools: notebooks, pytest and loggers; each is imported only when it is asked for."""
