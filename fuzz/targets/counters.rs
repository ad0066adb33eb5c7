//! Formulas, tables of events, and events as users write them, on any text.

#![no_main]

use std::io::{Error, ErrorKind, Result};

use libfuzzer_sys::fuzz_target;
use weigh::counters::named::{self, EventFiles};
use weigh::counters::tables::Microarchitecture;
use weigh::counters::{Formula, GroupId};

/// Every file of `/sys` has the same text.
struct SameText<'a>(&'a str);

impl EventFiles for SameText<'_> {
    fn text(&self, path: &str) -> Result<String> {
        if path.contains("cpumask") {
            Err(Error::from(ErrorKind::NotFound))
        } else {
            Ok(self.0.to_owned())
        }
    }

    fn names(&self, _: &str) -> Vec<String> {
        vec!["cpu".to_owned(), "event".to_owned(), "umask".to_owned()]
    }

    fn cpus(&self, _: &str) -> Option<Vec<u32>> {
        None
    }
}

fuzz_target!(|text: &str| {
    match Formula::parse(text) {
        Ok(formula) => {
            let again = Formula::parse(&formula.to_string());
            assert_eq!(again.as_ref(), Ok(&formula), "what is written is read as the same");
            let value = formula.evaluate(&|name| Some(name.len() as f64));
            assert!(value.is_none_or(f64::is_finite), "{formula}");
        }
        Err(error) => assert!(error.column <= text.chars().count() + 1, "{error}"),
    }
    let _ = GroupId::list(text);
    let _ = Microarchitecture::parse(text);
    let (event, file) = text.split_once('\n').unwrap_or((text, "config:0-7,32-35"));
    if let Ok(events) = named::parse_list(event, &SameText(file), None) {
        assert!(events.iter().all(|event| !event.name.is_empty()), "{event}");
    }
});
