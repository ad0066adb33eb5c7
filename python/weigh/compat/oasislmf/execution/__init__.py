"""Where oasislmf has its ``resource_monitor``."""
