//! Text from users and programs: quantities, lists of nodes, command lines whose secrets are masked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::job::node_list::{expand, repeated};
use weigh::quantity::{parse_duration, parse_ratio, parse_size};
use weigh::record::secrets;

fuzz_target!(|bytes: &[u8]| {
    let arguments: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let masked = secrets::command(&arguments);
    assert_eq!(masked.len(), arguments.len(), "no argument is lost");
    assert_eq!(secrets::command(&masked), masked, "masking twice is masking once");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = parse_duration(text);
    let _ = parse_size(text);
    let _ = parse_ratio(text);
    let _ = repeated(text);
    if let Ok(names) = expand(text) {
        assert!(names.iter().all(|name| !name.is_empty()), "every node has a name");
    }
});
