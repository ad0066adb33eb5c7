//! What a GPU is beside what is measured of it, how GPUs are selected (`--gpus`), and which GPUs
//! are visible to a process.

use crate::catalog::metrics::gpu::is_whole;

/// What a GPU is, beside what is measured of it.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gpu {
    /// Its name in the recording: vendor and index, and for a MIG instance also the instance's
    /// index, like `nvidia0` and `nvidia0:1`.
    pub name: String,
    /// Its UUID; null when not available.
    pub uuid: Option<String>,
    /// Its model name; null when not available.
    pub model: Option<String>,
    /// Its memory; null when not available.
    pub memory_bytes: Option<u64>,
    /// Its power limit; null when not available.
    pub power_limit_watts: Option<f64>,
    /// The version of its driver; null when not available.
    pub driver: Option<String>,
    /// Whether the run could use it, as `CUDA_VISIBLE_DEVICES` of its process says; null when
    /// that is not known.
    #[serde(default)]
    pub usable: Option<bool>,
    /// The machine it is in, in a merged recording; null where that is the only one.
    #[serde(default)]
    pub node: Option<String>,
}

impl Gpu {
    /// Whether the run could have used it. MIG instances are not counted beside their GPU.
    pub fn is_expected(&self) -> bool {
        is_whole(&self.name) && self.usable != Some(false)
    }
}

/// The variables that hide GPUs from a process; an unset one means all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    pub(crate) cuda: Option<String>,
    /// Whether CUDA numbers GPUs as NVML does.
    pub(crate) is_by_bus: bool,
    pub(crate) rocr: Option<String>,
    pub(crate) hip: Option<String>,
}

const MAKERS: [&str; 3] = ["nvidia", "amd", "intel"];

/// What `--gpus` may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuSelector<'w> {
    /// The index of a GPU, or of a MIG instance of it, and the maker where it is given.
    Index(Option<&'w str>, u32),
    /// A UUID or a prefix of one.
    Uuid,
}

impl GpuSelector<'_> {
    /// Parses an item of `--gpus`; `None` where it can name no GPU.
    pub(crate) fn parse(word: &str) -> Option<GpuSelector<'_>> {
        let word = word.trim();
        let begins = |start: &str| {
            word.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        };
        if begins("GPU-") || begins("MIG-") {
            return Some(GpuSelector::Uuid);
        }
        let maker = MAKERS.into_iter().find(|maker| word.starts_with(maker));
        let word = maker.and_then(|maker| word.strip_prefix(maker)).unwrap_or(word);
        let (card, part) =
            word.split_once(':').map_or((word, None), |(card, part)| (card, Some(part)));
        // As names have them: 00 is not an index.
        let is_plain = |text: &str| is_number(text) && (text == "0" || !text.starts_with('0'));
        if part.is_some_and(|part| !is_plain(part)) || !is_plain(card) {
            return None;
        }
        card.parse().ok().map(|number| GpuSelector::Index(maker, number))
    }
}

pub(crate) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}
