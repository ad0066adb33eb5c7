"""Where pytyche has its ``run_monitor``."""
