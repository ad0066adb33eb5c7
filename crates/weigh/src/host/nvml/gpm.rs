//! GPM: how busy the parts of a card were between two looks, on Hopper and later.

use std::mem::zeroed;

use nvml_wrapper_sys::bindings::{nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t};

use super::{Code, Device, call};

/// What is asked for, by NVML's numbers (`nvmlGpmMetricId_t`).
const ASKED: [u32; 7] = [2, 3, 5, 10, 11, 12, 13];

/// How busy the parts of a card were, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GpmActivity {
    /// The multiprocessors.
    pub sm: Option<f64>,
    /// Places for warps that were taken.
    pub occupancy: Option<f64>,
    /// Tensor cores.
    pub tensor: Option<f64>,
    /// The memory's bandwidth.
    pub memory_bandwidth: Option<f64>,
    /// Double precision.
    pub fp64: Option<f64>,
    /// Single precision.
    pub fp32: Option<f64>,
    /// Half precision.
    pub fp16: Option<f64>,
}

/// Two samples of a card, the last and the one before.
pub struct Gpm {
    device: Device,
    samples: [nvmlGpmSample_t; 2],
    taken: usize,
    /// NVML's own form is 9 KiB; it is filled in again and again.
    form: Box<nvmlGpmMetricsGet_t>,
}

impl Gpm {
    /// Room for samples of a card, if it has GPM.
    pub fn of(device: Device) -> Result<Gpm, Code> {
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
        let mut form: Box<nvmlGpmMetricsGet_t> = Box::new(unsafe { zeroed() });
        form.version = 1;
        form.numMetrics = ASKED.len() as u32;
        for (metric, id) in form.metrics.iter_mut().zip(ASKED) {
            metric.metricId = id;
        }
        Ok(Gpm { device, samples, taken: 0, form })
    }

    /// Takes a sample, and says what was between it and the last; nothing at the first.
    pub fn look(&mut self) -> Result<Option<GpmActivity>, Code> {
        let library = self.device.library;
        let newest = self.samples[self.taken % 2];
        call!(library, nvmlGpmSampleGet(self.device.handle, newest))?;
        self.taken += 1;
        if self.taken < 2 {
            return Ok(None);
        }
        self.form.sample1 = self.samples[self.taken % 2];
        self.form.sample2 = newest;
        call!(library, nvmlGpmMetricsGet(&mut *self.form))?;
        let value = |place: usize| {
            let metric = &self.form.metrics[place];
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
