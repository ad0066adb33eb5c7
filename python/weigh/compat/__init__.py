"""The interfaces of three other tools, measured by weigh.

Each package has the names of the tool it stands for, so that a script changes one import:

``weigh.compat.gpu_tracker``
    gpu-tracker 5.0.1
``weigh.compat.pytyche``
    ``pytyche.diagnostics.run_monitor`` of pytyche 0.2.1
``weigh.compat.oasislmf``
    ``oasislmf.execution.resource_monitor`` of oasislmf 2.5.8
"""
