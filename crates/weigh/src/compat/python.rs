//! Values as Python's `json`, `repr` and `pickle` write them.
//!
//! Scripts compare these files byte for byte, so a float is written as `repr` writes
//! it (`1e-05`, `0.1`, `2.0`) and text is escaped to ASCII.

/// A value of a result, with the keys of a map in their order.
#[derive(Debug, Clone, PartialEq)]
pub enum PythonValue {
    /// Nothing was measured.
    Missing,
    /// A whole number.
    Whole(i64),
    /// A real number; one that is whole keeps its `.0`.
    Real(f64),
    /// Text.
    Text(String),
    /// Values in a row.
    List(Vec<PythonValue>),
    /// Values by their names.
    Map(Vec<(String, PythonValue)>),
}

impl PythonValue {
    /// A map of these.
    pub fn map<K: Into<String>, const N: usize>(entries: [(K, PythonValue); N]) -> PythonValue {
        PythonValue::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// A real number, if there is one.
    pub fn real(number: Option<f64>) -> PythonValue {
        number.map_or(PythonValue::Missing, PythonValue::Real)
    }

    /// A whole number, if there is one.
    pub fn whole(number: Option<u64>) -> PythonValue {
        let number = number.and_then(|number| i64::try_from(number).ok());
        number.map_or(PythonValue::Missing, PythonValue::Whole)
    }

    /// A number that is written as a whole one when it is.
    pub fn count(number: f64) -> PythonValue {
        const EXACT_UP_TO: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() < EXACT_UP_TO {
            PythonValue::Whole(number as i64)
        } else {
            PythonValue::Real(number)
        }
    }

    /// A value of JSON, with the keys of a map in their order.
    pub fn of_json(json: &serde_json::Value) -> PythonValue {
        match json {
            serde_json::Value::Null => PythonValue::Missing,
            serde_json::Value::Bool(flag) => PythonValue::Whole(i64::from(*flag)),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => PythonValue::Whole(whole),
                None => PythonValue::real(number.as_f64()),
            },
            serde_json::Value::String(text) => PythonValue::Text(text.clone()),
            serde_json::Value::Array(items) => {
                PythonValue::List(items.iter().map(PythonValue::of_json).collect())
            }
            serde_json::Value::Object(entries) => PythonValue::Map(
                entries
                    .iter()
                    .map(|(key, value)| (key.clone(), PythonValue::of_json(value)))
                    .collect(),
            ),
        }
    }

    /// The value of this name in a map.
    pub fn get(&self, name: &str) -> Option<&PythonValue> {
        let PythonValue::Map(entries) = self else { return None };
        entries.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// A float as `repr` writes it.
pub fn repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let (sign, digits, exponent) = digits(number);
    let point = exponent + 1;
    let places = digits.len() as i32;
    let padded = |zeros: i32| "0".repeat(zeros.max(0) as usize);
    match exponent {
        -4..0 => format!("{sign}0.{}{digits}", padded(-point)),
        0..16 if places <= point => format!("{sign}{digits}{}.0", padded(point - places)),
        0..16 => format!("{sign}{}.{}", &digits[..point as usize], &digits[point as usize..]),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let way = if exponent < 0 { '-' } else { '+' };
            format!("{sign}{first}{dot}{rest}e{way}{:02}", exponent.abs())
        }
    }
}

/// The sign, the fewest digits that read back as the same number, and the exponent of ten.
///
/// Where two numbers with that many digits are equally near, Python takes the even one and Rust
/// the larger: formatting with exactly that many digits rounds half to even here, too.
fn digits(number: f64) -> (&'static str, String, i32) {
    let shortest = format!("{:e}", number.abs());
    let places = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit);
    let even = format!("{:.*e}", places.count().saturating_sub(1), number.abs());
    let same = even.parse() == Ok(number.abs());
    let chosen = if same { even } else { shortest };
    let (digits, exponent) = chosen.split_once('e').unwrap_or((&chosen, "0"));
    let sign = if number.is_sign_negative() { "-" } else { "" };
    (sign, digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// A float rounded to that many places: `float(f'{number:.3f}')`.
pub fn rounded(number: f64, places: usize) -> f64 {
    format!("{number:.places$}").parse().unwrap_or(number)
}

/// A value as `json.dumps(value, indent=…)` writes it.
pub fn dumps(value: &PythonValue, indent: usize) -> String {
    let mut json = String::new();
    write(&mut json, value, Some(indent), 0);
    json
}

/// A value as `json.dumps(value)` writes it: in one line.
pub fn dumps_line(value: &PythonValue) -> String {
    let mut json = String::new();
    write(&mut json, value, None, 0);
    json
}

fn write(json: &mut String, value: &PythonValue, indent: Option<usize>, depth: usize) {
    match value {
        PythonValue::Missing => json.push_str("null"),
        PythonValue::Whole(number) => json.push_str(&number.to_string()),
        PythonValue::Real(number) if number.is_nan() => json.push_str("NaN"),
        PythonValue::Real(number) if number.is_infinite() => {
            json.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        PythonValue::Real(number) => json.push_str(&repr(*number)),
        PythonValue::Text(text) => quote(json, text),
        PythonValue::List(items) => {
            let each = items.iter().map(|item| (None, item));
            nested(json, ('[', ']'), each, indent, depth);
        }
        PythonValue::Map(entries) => {
            let each = entries.iter().map(|(key, item)| (Some(key), item));
            nested(json, ('{', '}'), each, indent, depth);
        }
    }
}

fn nested<'a>(
    json: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = (Option<&'a String>, &'a PythonValue)>,
    indent: Option<usize>,
    depth: usize,
) {
    let line = |json: &mut String, depth: usize| {
        if let Some(indent) = indent {
            json.push('\n');
            json.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    let between = if indent.is_some() { "," } else { ", " };
    json.push(open);
    let mut any = false;
    for (key, item) in items {
        if any {
            json.push_str(between);
        }
        any = true;
        line(json, depth + 1);
        if let Some(key) = key {
            quote(json, key);
            json.push_str(": ");
        }
        write(json, item, indent, depth + 1);
    }
    if any {
        line(json, depth);
    }
    json.push(close);
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            ' '..='~' => json.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    json.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    json.push('"');
}

/// A value as a pickle of plain dicts, lists, strings and numbers (protocol 3).
pub fn pickle(value: &PythonValue) -> Vec<u8> {
    let mut bytes = vec![0x80, 3];
    put(&mut bytes, value);
    bytes.push(b'.');
    bytes
}

fn put(bytes: &mut Vec<u8>, value: &PythonValue) {
    match value {
        PythonValue::Missing => bytes.push(b'N'),
        PythonValue::Whole(number) => {
            bytes.extend([0x8a, 8]);
            bytes.extend(number.to_le_bytes());
        }
        PythonValue::Real(number) => {
            bytes.push(b'G');
            bytes.extend(number.to_be_bytes());
        }
        PythonValue::Text(text) => put_text(bytes, text),
        PythonValue::List(items) => {
            bytes.extend(b"](");
            items.iter().for_each(|item| put(bytes, item));
            bytes.push(b'e');
        }
        PythonValue::Map(entries) => {
            bytes.extend(b"}(");
            for (key, item) in entries {
                put_text(bytes, key);
                put(bytes, item);
            }
            bytes.push(b'u');
        }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'X');
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (number, text) in [
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (0.1, "0.1"),
            (2.0, "2.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-300, "1.5e-300"),
            (25.274793984000002, "25.274793984000002"),
            (123456.0, "123456.0"),
            (-0.00123, "-0.00123"),
            (444_041.0 / 131_072.0, "3.3877639770507812"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(repr(number), text);
        }
        assert_eq!(repr(rounded(0.0625, 3)), "0.062", "half is rounded to even");
    }

    #[test]
    fn json_is_indented_and_escaped_as_python_does() {
        let value = PythonValue::map([
            ("a\"\n", PythonValue::List(vec![PythonValue::Whole(1), PythonValue::Real(0.5)])),
            ("é😀\u{7f}", PythonValue::Map(Vec::new())),
            ("none", PythonValue::List(vec![PythonValue::Missing, PythonValue::Real(f64::NAN)])),
        ]);
        assert_eq!(
            dumps(&value, 1),
            "{\n \"a\\\"\\n\": [\n  1,\n  0.5\n ],\n \"\\u00e9\\ud83d\\ude00\\u007f\": {},\n \
             \"none\": [\n  null,\n  NaN\n ]\n}"
        );
        assert_eq!(
            dumps_line(&value),
            r#"{"a\"\n": [1, 0.5], "\u00e9\ud83d\ude00\u007f": {}, "none": [null, NaN]}"#
        );
    }

    #[test]
    fn json_that_was_read_is_written_as_it_was() {
        let json = r#"{"b": [1, 2.0, null, 1e-05], "a": {"text": "x"}}"#;
        let value = PythonValue::of_json(&serde_json::from_str(json).unwrap());
        assert_eq!(dumps_line(&value), json);
    }
}
