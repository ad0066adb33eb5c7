//! Formulas over counts, as the tables of events write them: numbers, names of events, `+ - * /` and
//! parentheses.
//!
//! A name may contain `.`, `:` and `-` (`L1D.REPLACEMENT`, `cache-misses`), so a minus after a name
//! needs a space before it. What cannot be computed (an event that was not counted, a division by
//! zero, a result that is no number) is `None`.

use std::fmt;

/// How deep parentheses may be: a formula of a table needs two or three.
const DEEPEST: usize = 32;

/// How many operators a formula may have. Evaluation descends once for each.
const MOST_OPERATORS: usize = 200;

/// A formula that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    root: Term,
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Number(f64),
    Name(String),
    Binary(Operator, Box<(Term, Term)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// What is wrong with a formula, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct FormulaError {
    /// Which character it is, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

impl Formula {
    /// Reads a formula.
    pub fn parse(text: &str) -> Result<Formula, FormulaError> {
        let mut reader = FormulaReader { text, at: 0, depth: 0, operators: 0 };
        let root = reader.sum()?;
        match reader.peek() {
            None => Ok(Formula { root }),
            Some(')') => Err(reader.error("`)` without `(`")),
            Some(other) => Err(reader.error(format!("an operator is expected, not `{other}`"))),
        }
    }

    /// Its value for these counts; `None` when a count is missing or a divisor is 0.
    pub fn evaluate(&self, count: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.root.evaluate(count)
    }

    /// The names it needs, in their order, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_names(&mut names);
        names
    }
}

impl Term {
    fn evaluate(&self, count: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Term::Number(number) => *number,
            Term::Name(name) => count(name)?,
            Term::Binary(operator, sides) => {
                let (left, right) = (sides.0.evaluate(count)?, sides.1.evaluate(count)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
        };
        // A division by zero is infinite or not a number.
        value.is_finite().then_some(value)
    }

    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Term::Number(_) => {}
            Term::Name(name) if names.contains(&name.as_str()) => {}
            Term::Name(name) => names.push(name),
            Term::Binary(_, sides) => {
                sides.0.collect_names(names);
                sides.1.collect_names(names);
            }
        }
    }
}

impl Operator {
    const fn symbol(self) -> char {
        match self {
            Operator::Add => '+',
            Operator::Subtract => '-',
            Operator::Multiply => '*',
            Operator::Divide => '/',
        }
    }

    /// Whether it binds as `*` and `/` do.
    const fn is_factor(self) -> bool {
        matches!(self, Operator::Multiply | Operator::Divide)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Number(number) => number.fmt(f),
            Term::Name(name) => f.write_str(name),
            Term::Binary(operator, sides) => {
                // Parentheses where the text would be read differently without them.
                let binds = |term: &Term, is_right: bool| match term {
                    Term::Binary(inner, _) => {
                        (inner.is_factor() || !operator.is_factor())
                            && !(is_right && inner.is_factor() == operator.is_factor())
                    }
                    _ => true,
                };
                for (side, is_right) in [(&sides.0, false), (&sides.1, true)] {
                    if is_right {
                        write!(f, " {} ", operator.symbol())?;
                    }
                    if binds(side, is_right) {
                        write!(f, "{side}")
                    } else {
                        write!(f, "({side})")
                    }?;
                }
                Ok(())
            }
        }
    }
}

/// Reads a formula by descent, from left to right.
struct FormulaReader<'a> {
    text: &'a str,
    /// Bytes read.
    at: usize,
    depth: usize,
    operators: usize,
}

impl FormulaReader<'_> {
    fn sum(&mut self) -> Result<Term, FormulaError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.pass_operator()?;
            left = Term::Binary(operator, Box::new((left, self.product()?)));
        }
    }

    fn product(&mut self) -> Result<Term, FormulaError> {
        let mut left = self.operand()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                _ => return Ok(left),
            };
            self.pass_operator()?;
            left = Term::Binary(operator, Box::new((left, self.operand()?)));
        }
    }

    fn pass_operator(&mut self) -> Result<(), FormulaError> {
        if self.operators == MOST_OPERATORS {
            return Err(self.error(format!("more than {MOST_OPERATORS} operators")));
        }
        self.operators += 1;
        self.at += 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<Term, FormulaError> {
        match self.peek() {
            Some('(') => self.parentheses(),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if is_name_start(c) => Ok(Term::Name(self.take(is_in_name).to_owned())),
            Some(other) => {
                Err(self.error(format!("a number or a name is expected, not `{other}`")))
            }
            None => Err(self.error("a number or a name is expected at the end")),
        }
    }

    fn parentheses(&mut self) -> Result<Term, FormulaError> {
        if self.depth == DEEPEST {
            return Err(self.error(format!("more than {DEEPEST} parentheses in each other")));
        }
        self.depth += 1;
        self.at += 1;
        let inner = self.sum()?;
        if self.peek() != Some(')') {
            return Err(self.error("`)` is expected"));
        }
        self.at += 1;
        self.depth -= 1;
        Ok(inner)
    }

    fn number(&mut self) -> Result<Term, FormulaError> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_alphanumeric() || c == '.');
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let wrong = format!("`{digits}` is not a number");
        number.map(Term::Number).ok_or_else(|| {
            self.at = start;
            self.error(wrong)
        })
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.len() - rest.trim_start_matches(' ').len();
        self.text.get(self.at..)?.chars().next()
    }

    /// The characters from here on that fulfil this.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn error(&self, what: impl Into<String>) -> FormulaError {
        let before = self.text.get(..self.at).unwrap_or_default();
        FormulaError { column: before.chars().count() + 1, what: what.into() }
    }
}

/// Whether a name may begin with this.
pub(super) fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a name may contain this.
pub(super) fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.:-".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Option<f64> {
        let count = |name: &str| match name {
            "cycles" => Some(200.0),
            "cache-misses" => Some(7.0),
            "L1D.REPLACEMENT" => Some(3.0),
            "zero" => Some(0.0),
            _ => None,
        };
        Formula::parse(text).unwrap().evaluate(&count)
    }

    #[test]
    fn products_come_before_sums_and_equals_from_the_left() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 3 - 2", 5.0),
            ("100 / 10 / 5", 2.0),
            ("10 - (3 - 2)", 9.0),
            ("2*3+4*5", 26.0),
            ("L1D.REPLACEMENT * 64", 192.0),
            ("100 - cache-misses", 93.0),
            ("cache-misses / cycles", 0.035),
            ("1.5 * 4", 6.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_is_missing() {
        for text in ["1 / zero", "zero / zero", "1 / (cycles - 200)", "missing * 2", "0 * missing"]
        {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn error_names_the_column() {
        for (text, column, what) in [
            ("", 1, "at the end"),
            ("1 +", 4, "at the end"),
            ("cycles 2", 8, "an operator is expected, not `2`"),
            ("(1 + 2", 7, "`)` is expected"),
            ("1 + 2)", 6, "`)` without `(`"),
            ("2 * * 3", 5, "not `*`"),
            ("-1", 1, "not `-`"),
            ("1 + é", 5, "not `é`"),
            ("1.2.3", 1, "`1.2.3` is not a number"),
            ("1e999", 1, "is not a number"),
            ("2x", 1, "`2x` is not a number"),
            ("a; b", 2, "not `;`"),
            ("a ** b", 4, "not `*`"),
        ] {
            let error = Formula::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
        }
        assert!(Formula::parse(&"(".repeat(100_000)).unwrap_err().what.contains("more than 32"));
        let long = format!("1{}", " + 1".repeat(201));
        assert!(Formula::parse(&long).unwrap_err().what.contains("more than 200 operators"));
    }

    #[test]
    fn names_are_told_once_and_whole() {
        let formula = Formula::parse("(a.b:c - cache-misses) / (a.b:c + d_1)").unwrap();
        assert_eq!(formula.names(), ["a.b:c", "cache-misses", "d_1"]);
    }

    #[test]
    fn minus_without_a_space_belongs_to_the_name() {
        assert_eq!(Formula::parse("a-b").unwrap().names(), ["a-b"]);
        assert_eq!(Formula::parse("a - b").unwrap().names(), ["a", "b"]);
    }

    fn formulas() -> impl Strategy<Value = Term> {
        let name = prop_oneof![Just("cycles"), Just("cache-misses"), Just("L1D.REPLACEMENT")];
        let leaf = prop_oneof![
            (0_u32..1000).prop_map(|number| Term::Number(f64::from(number) / 8.0)),
            name.prop_map(|name| Term::Name(name.to_owned())),
        ];
        let operator = prop_oneof![
            Just(Operator::Add),
            Just(Operator::Subtract),
            Just(Operator::Multiply),
            Just(Operator::Divide)
        ];
        leaf.prop_recursive(6, 64, 2, move |inner| {
            (operator.clone(), inner.clone(), inner)
                .prop_map(|(operator, left, right)| Term::Binary(operator, Box::new((left, right))))
        })
    }

    proptest! {
        #[test]
        fn written_formula_is_read_as_the_same(root in formulas()) {
            let formula = Formula { root };
            prop_assert_eq!(Formula::parse(&formula.to_string()), Ok(formula));
        }

        #[test]
        fn any_text_is_a_formula_or_an_error_inside_it(text in ".{0,60}") {
            if let Err(error) = Formula::parse(&text) {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }

        #[test]
        fn value_is_always_a_number(root in formulas(), count in prop::num::f64::ANY) {
            let value = Formula { root }.evaluate(&|_| Some(count));
            prop_assert!(value.is_none_or(f64::is_finite));
        }
    }
}
