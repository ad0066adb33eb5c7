//! Lists of nodes as SLURM, Flux and PBS abbreviate them: `n[01-03,7],gpu-a[1-2]-ib0`.
//!
//! A name may have several brackets (`rack[1-2]n[01-16]`), and brackets may be nested
//! (`n[1,2[0-3]]`). Numbers keep the width of the first one of their range: `[08-11]` is 08, 09,
//! 10, 11. The text comes from the environment or from another program, so it is limited in every
//! way: `n[1-999999999]` is refused before anything is allocated.

/// The most names of a list; the largest machines have some ten thousand nodes.
const MOST_NAMES: usize = 1 << 17;

/// The most bytes of all names.
const MOST_BYTES: usize = 16 << 20;

/// The deepest brackets.
const DEEPEST: u32 = 8;

/// Why a list cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no list of nodes.
    #[error("{what} at byte {at} of the node list")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// It stands for more names than any machine has.
    #[error("the node list stands for more than {MOST_NAMES} nodes, or {MOST_BYTES} bytes")]
    TooMany,
}

/// The names that a list stands for, in its order.
pub fn expand(list: &str) -> Result<Vec<String>, Error> {
    let mut parser = NodeListParser { text: list.trim(), at: 0 };
    let names = parser.names(0)?;
    match parser.peek() {
        None => Ok(names),
        Some(_) => Err(parser.malformed("a bracket that was not opened")),
    }
}

struct NodeListParser<'t> {
    text: &'t str,
    at: usize,
}

impl NodeListParser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { what, at: self.at }
    }

    /// Names with commas between them, up to the end or to a closing bracket.
    fn names(&mut self, depth: u32) -> Result<Vec<String>, Error> {
        let mut all = Vec::new();
        loop {
            let range = if depth > 0 { self.range()? } else { None };
            let more = match range {
                Some(names) => names,
                None => self.name(depth)?,
            };
            all.extend(more);
            check_size(&all)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => return Ok(all),
            }
        }
    }

    /// One name, with all that its brackets stand for.
    fn name(&mut self, depth: u32) -> Result<Vec<String>, Error> {
        let start = self.at;
        let mut names = vec![String::new()];
        loop {
            match self.peek() {
                None | Some(b',' | b']') if self.at == start => {
                    return Err(self.malformed("an empty name"));
                }
                None | Some(b',' | b']') => return Ok(names),
                Some(b'[') => {
                    if depth == DEEPEST {
                        return Err(self.malformed("too many brackets"));
                    }
                    self.at += 1;
                    let inner = self.names(depth + 1)?;
                    if self.peek() != Some(b']') {
                        return Err(self.malformed("a bracket that is not closed"));
                    }
                    self.at += 1;
                    names = product(&names, &inner)?;
                }
                Some(_) => {
                    let literal = self.literal()?;
                    names.iter_mut().for_each(|name| name.push_str(literal));
                    check_size(&names)?;
                }
            }
        }
    }

    /// Text up to a comma or a bracket.
    fn literal(&mut self) -> Result<&str, Error> {
        let rest = &self.text[self.at..];
        let end = rest.find(['[', ']', ',']).unwrap_or(rest.len());
        let literal = &rest[..end];
        if literal.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
            return Err(self.malformed("a character that no name has"));
        }
        self.at += end;
        Ok(literal)
    }

    /// `3` or `01-16` before a comma or a closing bracket; `None` when it is something else.
    fn range(&mut self) -> Result<Option<Vec<String>>, Error> {
        let rest = &self.text[self.at..];
        let Some(end) = rest.find([',', ']']) else { return Ok(None) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (first, last) = rest[..end].split_once('-').unwrap_or((&rest[..end], &rest[..end]));
        if !is_number(first) || !is_number(last) {
            return Ok(None);
        }
        let (Ok(low), Ok(high)) = (first.parse::<u64>(), last.parse::<u64>()) else {
            return Err(self.malformed("a number that is too large"));
        };
        if low > high {
            return Err(self.malformed("a range that ends before it begins"));
        }
        let width = first.len();
        if high - low >= MOST_NAMES as u64 || width > 64 {
            return Err(Error::TooMany);
        }
        self.at += end;
        Ok(Some((low..=high).map(|number| format!("{number:0width$}")).collect()))
    }
}

/// Each name with each continuation.
fn product(names: &[String], more: &[String]) -> Result<Vec<String>, Error> {
    let bytes = |list: &[String]| list.iter().map(String::len).sum::<usize>();
    let count = names.len().saturating_mul(more.len());
    let size = bytes(names)
        .saturating_mul(more.len())
        .saturating_add(bytes(more).saturating_mul(names.len()));
    if count > MOST_NAMES || size > MOST_BYTES {
        return Err(Error::TooMany);
    }
    let joined = |name: &String| {
        let name = name.clone();
        more.iter().map(move |end| format!("{name}{end}"))
    };
    Ok(names.iter().flat_map(joined).collect())
}

fn check_size(names: &[String]) -> Result<(), Error> {
    let is_small = names.len() <= MOST_NAMES
        && (names.len() < 1024 || names.iter().map(String::len).sum::<usize>() <= MOST_BYTES);
    if is_small { Ok(()) } else { Err(Error::TooMany) }
}

/// How often each value of an abbreviated list applies, as in `2(x3),4`: one for each node.
pub fn repeated(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for item in list.trim().split(',') {
        let (value, times) = match item.split_once("(x") {
            Some((value, times)) => (value, times.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (item, 1),
        };
        let value: u32 = value.parse().ok()?;
        if all.len().saturating_add(times) > MOST_NAMES {
            return None;
        }
        all.extend(std::iter::repeat_n(value, times));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(list: &str) -> Vec<String> {
        expand(list).unwrap()
    }

    #[test]
    fn brackets_stand_for_names_in_order_and_keep_the_width_of_numbers() {
        for (list, expected) in [
            ("n1", "n1"),
            ("n[1-3]", "n1 n2 n3"),
            ("n[01-03,7],gpu-a[1-2]-ib0", "n01 n02 n03 n7 gpu-a1-ib0 gpu-a2-ib0"),
            ("n[08-11]", "n08 n09 n10 n11"),
            ("rack[1-2]n[01-02]", "rack1n01 rack1n02 rack2n01 rack2n02"),
            ("n[1,2[0-1]],x", "n1 n20 n21 x"),
            ("n[a,b]", "na nb"),
            ("login-1.example.org", "login-1.example.org"),
            (" n1,n2\n", "n1 n2"),
        ] {
            assert_eq!(names(list).join(" "), expected, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_of_nodes_is_refused_with_its_place() {
        for (list, at) in [
            ("", 0),
            ("n1,", 3),
            (",n1", 0),
            ("n[", 2),
            ("n[1-3", 5),
            ("n1]", 2),
            ("n[]", 2),
            ("n[3-1]", 2),
            ("n 1", 0),
            ("a/b", 0),
            ("n[99999999999999999999999]", 2),
        ] {
            let error = expand(list).unwrap_err();
            assert!(
                matches!(error, Error::Malformed { at: found, .. } if found == at),
                "{list}: {error}"
            );
        }
        assert!(expand(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn list_of_more_nodes_than_any_machine_has_is_refused_before_it_is_made() {
        let square = "n[1-100000]x[1-100000]".to_owned();
        let long = format!("{}[1-100000]", "n".repeat(1000));
        let many = ["n[1-100000]"; 10].join(",");
        for list in ["n[1-999999999]", "n[0-18446744073709551615]", &square, &long, &many] {
            assert_eq!(expand(list), Err(Error::TooMany), "{list:.40}");
        }
        assert_eq!(names("n[1-100000]").len(), 100_000);
    }

    #[test]
    fn repeated_values_are_one_for_each_node() {
        assert_eq!(repeated("2(x2),4"), Some(vec![2, 2, 4]));
        assert_eq!(repeated("16"), Some(vec![16]));
        for wrong in ["", "x", "2(x", "2(x9999999999)", "2(xa)"] {
            assert_eq!(repeated(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_an_error(text in "[n0-9\\[\\],-]{0,40}") {
            if let Ok(found) = expand(&text) {
                prop_assert!(found.iter().all(|name| !name.is_empty() && !name.contains(['[', ']', ','])));
            }
        }
    }
}
