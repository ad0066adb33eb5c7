//! Rows in columns, with buffers that are reused from tick to tick.
//!
//! The same shape serves one tick (filled by collectors, read by the summary) and
//! a batch of ticks (filled by [`Table::append`], written to disk).

use std::collections::HashMap;
use std::time::Duration;

use super::Entity;
use crate::catalog::{Metric, Row, Scope, Type, Value};

/// The rows of one scope.
#[derive(Debug, Clone)]
pub struct Table {
    scope: Scope,
    metrics: Vec<&'static Metric>,
    /// Each group and its first column: looked up several times for every row.
    groups: Vec<(&'static str, usize)>,
    times: Vec<Duration>,
    /// The place of each row's tick in the order of the run; `None` until it is recorded.
    sequence: Vec<Option<u64>>,
    entities: Vec<Entity>,
    columns: Vec<Column>,
    /// Where an entity's row of this tick is, so that several groups share one row.
    places: HashMap<Entity, usize>,
}

/// The values of one metric, a slot for each row.
#[derive(Debug, Clone)]
pub struct Column {
    /// Whether the row has a value.
    pub present: Vec<bool>,
    /// The values; a row without one holds a zero that must not be read.
    pub cells: Cells,
}

/// The values of a column, by how they are stored.
#[derive(Debug, Clone)]
pub enum Cells {
    /// Whole numbers.
    U64(Vec<u64>),
    /// Real numbers.
    F64(Vec<f64>),
    /// Indices into a list of symbols.
    Symbol(Vec<u8>),
}

impl Column {
    fn new(stored: Type) -> Column {
        let cells = match stored {
            Type::U64 => Cells::U64(Vec::new()),
            Type::F64 => Cells::F64(Vec::new()),
            Type::Symbol(_) => Cells::Symbol(Vec::new()),
        };
        Column { present: Vec::new(), cells }
    }

    fn clear(&mut self) {
        self.present.clear();
        match &mut self.cells {
            Cells::U64(cells) => cells.clear(),
            Cells::F64(cells) => cells.clear(),
            Cells::Symbol(cells) => cells.clear(),
        }
    }

    fn shrink(&mut self) {
        self.present.pop();
        match &mut self.cells {
            Cells::U64(cells) => drop(cells.pop()),
            Cells::F64(cells) => drop(cells.pop()),
            Cells::Symbol(cells) => drop(cells.pop()),
        }
    }

    fn grow(&mut self) {
        self.present.push(false);
        match &mut self.cells {
            Cells::U64(cells) => cells.push(0),
            Cells::F64(cells) => cells.push(0.0),
            Cells::Symbol(cells) => cells.push(0),
        }
    }

    fn set(&mut self, place: usize, value: Value) {
        match (&mut self.cells, value) {
            (Cells::U64(cells), Value::U64(value)) => cells[place] = value,
            (Cells::F64(cells), Value::F64(value)) => cells[place] = value,
            (Cells::Symbol(cells), Value::Symbol(value)) => cells[place] = value,
            // A recording whose column has another type than ours: not our value.
            _ => return,
        }
        self.present[place] = true;
    }

    /// The value of one row.
    pub fn get(&self, place: usize) -> Option<Value> {
        self.present[place].then(|| match &self.cells {
            Cells::U64(cells) => Value::U64(cells[place]),
            Cells::F64(cells) => Value::F64(cells[place]),
            Cells::Symbol(cells) => Value::Symbol(cells[place]),
        })
    }

    fn append(&mut self, other: &Column) {
        self.present.extend_from_slice(&other.present);
        match (&mut self.cells, &other.cells) {
            (Cells::U64(mine), Cells::U64(theirs)) => mine.extend_from_slice(theirs),
            (Cells::F64(mine), Cells::F64(theirs)) => mine.extend_from_slice(theirs),
            (Cells::Symbol(mine), Cells::Symbol(theirs)) => mine.extend_from_slice(theirs),
            _ => debug_assert!(false, "tables of one scope have the same columns"),
        }
    }
}

impl Table {
    /// An empty table with the columns that these groups have in this scope.
    pub fn new(scope: Scope, groups: &[&'static [Metric]]) -> Table {
        let metrics: Vec<&'static Metric> =
            groups.iter().copied().flatten().filter(|metric| metric.scope == scope).collect();
        let columns = metrics.iter().map(|metric| Column::new(metric.stored)).collect();
        let mut groups: Vec<(&'static str, usize)> = Vec::new();
        for (column, metric) in metrics.iter().enumerate() {
            if groups.last().is_none_or(|(group, _)| *group != metric.group) {
                groups.push((metric.group, column));
            }
        }
        Table {
            scope,
            metrics,
            groups,
            times: Vec::new(),
            sequence: Vec::new(),
            entities: Vec::new(),
            columns,
            places: HashMap::new(),
        }
    }

    /// What the rows are about.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The metric of each column.
    pub fn metrics(&self) -> &[&'static Metric] {
        &self.metrics
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When each row was measured, since the run began.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The sequence number of each row's tick, where it was recorded.
    pub(crate) fn sequence(&self) -> &[Option<u64>] {
        &self.sequence
    }

    /// The entity of each row.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The columns, in the order of [`Table::metrics`].
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Clears the rows and keeps the allocations.
    pub fn clear(&mut self) {
        self.times.clear();
        self.sequence.clear();
        self.entities.clear();
        self.places.clear();
        self.columns.iter_mut().for_each(Column::clear);
    }

    /// Adds one group of values to the row of an entity.
    pub fn put<R: Row>(&mut self, at: Duration, entity: Entity, row: &R) {
        let Some(first) = self.first_column::<R>() else { return };
        let place = self.place(at, entity);
        row.put_each(|column, value| {
            if let Some(value) = value {
                self.columns[first + column].set(place, value);
            }
        });
    }

    /// Removes the last row, if it is this entity's.
    pub fn remove_last_row(&mut self, entity: Entity) {
        if self.entities.last() == Some(&entity) {
            self.entities.pop();
            self.times.pop();
            self.sequence.pop();
            self.places.remove(&entity);
            self.columns.iter_mut().for_each(Column::shrink);
        }
    }

    /// The column of a metric.
    pub fn column(&self, metric: &Metric) -> Option<&Column> {
        self.columns.get(self.metrics.iter().position(|one| *one == metric)?)
    }

    /// One group of values of a row.
    pub fn get<R: Row>(&self, place: usize) -> R {
        let first = self.first_column::<R>();
        R::from_each(|column| self.columns.get(first? + column)?.get(place))
    }

    /// One group of values of every row, and its entity.
    pub fn rows<R: Row>(&self) -> impl Iterator<Item = (Entity, R)> {
        self.entities.iter().enumerate().map(|(place, entity)| (*entity, self.get(place)))
    }

    /// Begins a row of its own, as a recording has it.
    pub(crate) fn begin_row(&mut self, at: Duration, sequence: Option<u64>, entity: Entity) {
        self.times.push(at);
        self.sequence.push(sequence);
        self.entities.push(entity);
        self.columns.iter_mut().for_each(Column::grow);
    }

    /// Sets one value of the last row.
    pub(crate) fn set_last(&mut self, column: usize, value: Value) {
        if let Some(last) = self.times.len().checked_sub(1) {
            self.columns[column].set(last, value);
        }
    }

    /// Replaces a value of a row, or clears it.
    pub(crate) fn replace(&mut self, column: usize, row: usize, value: Option<Value>) {
        match value {
            Some(value) => self.columns[column].set(row, value),
            None => self.columns[column].present[row] = false,
        }
    }

    /// Adds one row of another table of the same scope.
    pub(crate) fn append_row(&mut self, other: &Table, place: usize) {
        self.append_row_as(other, place, other.times[place], other.entities[place]);
    }

    /// The same, with another time and another entity.
    pub(crate) fn append_row_as(
        &mut self,
        other: &Table,
        place: usize,
        at: Duration,
        entity: Entity,
    ) {
        self.begin_row(at, other.sequence[place], entity);
        for (column, theirs) in other.columns.iter().enumerate() {
            if let Some(value) = theirs.get(place) {
                self.set_last(column, value);
            }
        }
    }

    /// The row of an entity in this tick, created when needed.
    fn place(&mut self, at: Duration, entity: Entity) -> usize {
        // Collectors write all groups of an entity one after the other.
        if let Some(last) = self.entities.last()
            && *last == entity
        {
            return self.entities.len() - 1;
        }
        let next = self.entities.len();
        let place = *self.places.entry(entity).or_insert(next);
        if place == next {
            self.begin_row(at, None, entity);
        }
        place
    }

    /// Adds all rows of another table of the same scope, which are of the tick of this sequence
    /// number.
    pub fn append(&mut self, other: &Table, sequence: Option<u64>) {
        self.times.extend_from_slice(&other.times);
        self.sequence.extend(std::iter::repeat_n(sequence, other.len()));
        self.entities.extend_from_slice(&other.entities);
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.append(theirs);
        }
    }

    fn first_column<R: Row>(&self) -> Option<usize> {
        let found = self.groups.iter().find(|(group, _)| *group == R::GROUP);
        found.filter(|_| self.scope == R::SCOPE).map(|(_, column)| *column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics;
    use crate::model::ProcessId;

    metrics! {
        /// For the tests.
        struct First in Process / "first", "First" {
            /// One.
            one: Gauge u64 One, "One", from "here";
            /// Two.
            two: Counter f64 Seconds, "Two", from "here";
        }
    }
    metrics! {
        /// For the tests.
        struct Second in Process / "second", "Second" {
            /// Three.
            three: Gauge u64 Bytes, "Three", from "here";
        }
    }

    fn process(pid: u32) -> Entity {
        Entity::Process(ProcessId { pid, started: 7 })
    }

    #[test]
    fn groups_of_one_entity_share_a_row_and_missing_stays_missing() {
        let mut table = Table::new(Scope::Process, &[First::METRICS, Second::METRICS]);
        let at = Duration::from_secs(1);
        table.put(at, process(1), &First { one: Some(1), two: None });
        table.put(at, process(2), &First { one: None, two: Some(0.5) });
        table.put(at, process(1), &Second { three: Some(3) });
        assert_eq!(table.len(), 2);
        assert_eq!(table.get::<First>(0), First { one: Some(1), two: None });
        assert_eq!(table.get::<Second>(0), Second { three: Some(3) });
        assert_eq!(table.get::<First>(1), First { one: None, two: Some(0.5) });
        assert_eq!(table.get::<Second>(1), Second { three: None });
    }

    #[test]
    fn withdrawn_row_is_gone_and_its_entity_may_have_another_one() {
        let mut table = Table::new(Scope::Process, &[First::METRICS]);
        let at = Duration::from_secs(1);
        for pid in [1, 2] {
            table.put(at, process(pid), &First { one: Some(u64::from(pid)), two: None });
        }
        table.remove_last_row(process(1));
        assert_eq!(table.len(), 2, "it is not the last one");
        table.remove_last_row(process(2));
        table.put(at, process(2), &First { one: None, two: Some(0.5) });
        assert_eq!(table.entities(), [process(1), process(2)]);
        assert_eq!(table.get::<First>(1), First { one: None, two: Some(0.5) });
    }

    #[test]
    fn a_batch_has_separate_rows_for_every_tick() {
        let mut tick = Table::new(Scope::Process, &[First::METRICS]);
        let mut batch = tick.clone();
        for second in 1..=2 {
            tick.clear();
            let row = First { one: Some(second), two: None };
            tick.put(Duration::from_secs(second), process(1), &row);
            batch.append(&tick, Some(1));
        }
        assert_eq!(batch.times(), [Duration::from_secs(1), Duration::from_secs(2)]);
        assert_eq!(batch.get::<First>(1).one, Some(2));
    }
}
