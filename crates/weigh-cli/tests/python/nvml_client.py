"""Asks the stand-in for NVIDIA's library what it has, with NVIDIA's own client.

The library is found by its name on LD_LIBRARY_PATH, as the real one is. What is printed is
JSON that the test compares with the script the stand-in answers from.
"""

import json

import pynvml as nvml


def asked(call, *arguments):
    """The answer, or the code of the error."""
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        return {"code": error.value}


nvml.nvmlInit()
devices = []
for index in range(nvml.nvmlDeviceGetCount()):
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(device)
    bar1 = nvml.nvmlDeviceGetBAR1MemoryInfo(device)
    rates = nvml.nvmlDeviceGetUtilizationRates(device)
    running = nvml.nvmlDeviceGetComputeRunningProcesses(device)
    _, samples = nvml.nvmlDeviceGetSamples(device, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
    of_processes = nvml.nvmlDeviceGetProcessUtilization(device, 0)
    violation = nvml.nvmlDeviceGetViolationStatus(device, nvml.NVML_PERF_POLICY_POWER)
    link = nvml.nvmlDeviceGetFieldValues(device, [nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX])
    devices.append(
        {
            "name": nvml.nvmlDeviceGetName(device),
            "uuid": nvml.nvmlDeviceGetUUID(device),
            "memory": [memory.total, memory.free, memory.used],
            "reserved": nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2).reserved,
            "bar1": [bar1.bar1Total, bar1.bar1Used],
            "utilization": [rates.gpu, rates.memory],
            "encoder": nvml.nvmlDeviceGetEncoderUtilization(device)[0],
            "power": nvml.nvmlDeviceGetPowerUsage(device),
            "energy": nvml.nvmlDeviceGetTotalEnergyConsumption(device),
            "temperature": nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
            "fan": asked(nvml.nvmlDeviceGetFanSpeed, device),
            "clocks": [nvml.nvmlDeviceGetClockInfo(device, clock) for clock in range(3)],
            "throttled": nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
            "violation": violation.violationTime,
            "ecc": nvml.nvmlDeviceGetTotalEccErrors(device, 0, 1),
            "pcie": nvml.nvmlDeviceGetPcieThroughput(device, nvml.NVML_PCIE_UTIL_TX_BYTES),
            "width": nvml.nvmlDeviceGetCurrPcieLinkWidth(device),
            "link": link[0].value.ullVal,
            "processes": [[one.pid, one.usedGpuMemory] for one in running],
            "together": [
                [one.pid, one.usedGpuMemory]
                for one in nvml.nvmlDeviceGetMPSComputeRunningProcesses(device)
            ],
            "samples": [[one.timeStamp, one.sampleValue.uiVal] for one in samples],
            "process_samples": [[one.pid, one.smUtil, one.decUtil] for one in of_processes],
            "peak": nvml.nvmlDeviceGetAccountingStats(device, 4182).maxMemoryUsage,
            "running": nvml.nvmlDeviceGetAccountingStats(device, 4182).isRunning,
            "parts": nvml.nvmlDeviceGetMaxMigDeviceCount(device),
            "part": nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)),
            "gpm": bool(nvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice),
        }
    )
nvml.nvmlShutdown()
print(json.dumps(devices))
