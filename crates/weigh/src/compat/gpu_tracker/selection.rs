//! The GPUs of a brand, and those whose utilization counts: `gpu_brand` and `gpu_uuids`.

use crate::catalog::metrics::gpu::is_whole;
use crate::model::Gpu;

/// The brands that gpu-tracker knows.
const BRANDS: [&str; 2] = ["nvidia", "amd"];

/// Refuses a brand that gpu-tracker does not know.
pub fn check_brand(brand: &str) -> Result<(), String> {
    if BRANDS.contains(&brand) {
        return Ok(());
    }
    Err(format!(
        "\"{brand}\" is not a valid GPU brand. Supported values are \"nvidia\" and \"amd\"."
    ))
}

/// Refuses UUIDs and a brand that a machine with these GPUs does not have, in gpu-tracker's
/// wording. Returns the names of the GPUs to measure, where not all are measured.
///
/// A machine without GPUs takes any UUID, as gpu-tracker does there: nothing is measured.
pub fn choose_gpus<U: AsRef<str>>(
    gpus: &[Gpu],
    uuids: Option<&[U]>,
    brand: Option<&str>,
) -> Result<Option<Vec<String>>, String> {
    let is_of = |gpu: &&Gpu, brand: &str| gpu.name.starts_with(brand);
    let supported = gpus.iter().filter(|gpu| BRANDS.iter().any(|brand| is_of(gpu, brand)));
    let whole: Vec<&Gpu> = supported.filter(|gpu| is_whole(&gpu.name)).collect();
    let of_brand: Vec<&Gpu> =
        whole.iter().copied().filter(|gpu| brand.is_none_or(|brand| is_of(gpu, brand))).collect();
    if let (Some(brand), true) = (brand, of_brand.is_empty()) {
        let names: Vec<&str> = whole.iter().map(|gpu| gpu.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!("no GPU of the brand \"{brand}\" is found. Available GPUs: {names}"));
    }
    let mut available: Vec<&str> = of_brand.iter().filter_map(|gpu| gpu.uuid.as_deref()).collect();
    available.sort_unstable();
    let is_missing = |uuid: &&str| !whole.is_empty() && !available.contains(uuid);
    let mut wanted = uuids.into_iter().flatten().map(AsRef::as_ref);
    if let Some(uuid) = wanted.find(is_missing) {
        let available = available.join(", ");
        return Err(format!("GPU UUID of {uuid} is not valid. Available UUIDs are: {available}"));
    }
    let names = || of_brand.iter().map(|gpu| gpu.name.clone()).collect();
    Ok((brand.is_some() && of_brand.len() < gpus.len()).then(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gpus: &[(&str, &str)]) -> Vec<Gpu> {
        let gpu = |(name, uuid): &(&str, &str)| Gpu {
            name: (*name).to_owned(),
            uuid: Some((*uuid).to_owned()),
            ..Gpu::default()
        };
        gpus.iter().map(gpu).collect()
    }

    fn chosen(
        gpus: &[Gpu],
        uuids: Option<&[&str]>,
        brand: Option<&str>,
    ) -> Result<Option<Vec<String>>, String> {
        choose_gpus(gpus, uuids, brand)
    }

    #[test]
    fn unknown_uuid_is_refused_with_the_available_ones() {
        let two = machine(&[("nvidia1", "GPU-b"), ("nvidia0", "GPU-a"), ("nvidia0:0", "MIG-c")]);
        assert_eq!(chosen(&two, Some(&["GPU-b", "GPU-a"]), None), Ok(None));
        let why = "GPU UUID of GPU-x is not valid. Available UUIDs are: GPU-a, GPU-b";
        assert_eq!(chosen(&two, Some(&["GPU-a", "GPU-x"]), None), Err(why.to_owned()));
        assert_eq!(chosen(&[], Some(&["GPU-x"]), None), Ok(None), "as gpu-tracker without a GPU");
        let laptop = machine(&[("intel0", "x")]);
        assert_eq!(
            chosen(&laptop, Some(&["GPU-x"]), None),
            Ok(None),
            "gpu-tracker does not know Intel GPUs"
        );
    }

    #[test]
    fn missing_brand_is_refused_and_one_of_two_brands_is_measured_alone() {
        let two = machine(&[("nvidia0", "GPU-a"), ("nvidia1", "GPU-b")]);
        let why = "no GPU of the brand \"amd\" is found. Available GPUs: nvidia0, nvidia1";
        assert_eq!(chosen(&two, None, Some("amd")), Err(why.to_owned()));
        assert_eq!(chosen(&two, None, Some("nvidia")), Ok(None), "that is all of them");
        assert!(chosen(&[], None, Some("nvidia")).is_err(), "as gpu-tracker");
        let mixed = machine(&[("nvidia0", "GPU-a"), ("amd0", "GPU-b")]);
        let amd = Some(vec!["amd0".to_owned()]);
        assert_eq!(chosen(&mixed, Some(&["GPU-b"]), Some("amd")), Ok(amd));
        let other = chosen(&mixed, Some(&["GPU-a"]), Some("amd"));
        assert!(other.is_err(), "it is of the other brand");
        assert!(
            check_brand("intel").unwrap_err().starts_with("\"intel\" is not a valid GPU brand.")
        );
    }
}
