//! GPM: utilization of the units of a GPU between two samples, on Hopper and later.

use std::mem::zeroed;

use nvml_wrapper_sys::bindings::{nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t};

use super::{Code, NvmlDevice, call};

/// The metrics that are read (`nvmlGpmMetricId_t`).
const METRICS: [u32; 7] = [2, 3, 5, 10, 11, 12, 13];

/// Utilization of the units of a GPU, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GpmActivity {
    /// The multiprocessors.
    pub sm: Option<f64>,
    /// Occupancy of the warp slots.
    pub occupancy: Option<f64>,
    /// Tensor cores.
    pub tensor: Option<f64>,
    /// Memory bandwidth.
    pub memory_bandwidth: Option<f64>,
    /// Double precision.
    pub fp64: Option<f64>,
    /// Single precision.
    pub fp32: Option<f64>,
    /// Half precision.
    pub fp16: Option<f64>,
}

/// Two samples of a GPU, the last and the one before.
pub struct Gpm {
    device: NvmlDevice,
    samples: [nvmlGpmSample_t; 2],
    taken: usize,
    /// 9 KiB, reused for each call.
    request: Box<nvmlGpmMetricsGet_t>,
}

impl Gpm {
    /// Allocates the samples of a GPU, if it has GPM.
    pub fn of(device: NvmlDevice) -> Result<Gpm, Code> {
        let mut support = nvmlGpmSupport_t { version: 1, isSupportedDevice: 0 };
        call!(device.library, nvmlGpmQueryDeviceSupport(device.handle, &mut support))?;
        if support.isSupportedDevice == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let mut samples = [std::ptr::null_mut(); 2];
        for sample in &mut samples {
            call!(device.library, nvmlGpmSampleAlloc(sample))?;
        }
        // SAFETY: numbers may be zero and pointers null.
        let mut request: Box<nvmlGpmMetricsGet_t> = Box::new(unsafe { zeroed() });
        request.version = 1;
        request.numMetrics = METRICS.len() as u32;
        for (metric, id) in request.metrics.iter_mut().zip(METRICS) {
            metric.metricId = id;
        }
        Ok(Gpm { device, samples, taken: 0, request })
    }

    /// Takes a sample, and returns the utilization since the last; nothing at the first.
    pub fn sample(&mut self) -> Result<Option<GpmActivity>, Code> {
        let library = self.device.library;
        let newest = self.samples[self.taken % 2];
        call!(library, nvmlGpmSampleGet(self.device.handle, newest))?;
        self.taken += 1;
        if self.taken < 2 {
            return Ok(None);
        }
        self.request.sample1 = self.samples[self.taken % 2];
        self.request.sample2 = newest;
        call!(library, nvmlGpmMetricsGet(&mut *self.request))?;
        let value = |place: usize| {
            let metric = &self.request.metrics[place];
            (metric.nvmlReturn == 0 && metric.value.is_finite()).then_some(metric.value)
        };
        Ok(Some(GpmActivity {
            sm: value(0),
            occupancy: value(1),
            tensor: value(2),
            memory_bandwidth: value(3),
            fp64: value(4),
            fp32: value(5),
            fp16: value(6),
        }))
    }
}
