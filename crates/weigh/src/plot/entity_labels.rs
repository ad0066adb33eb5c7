//! Names and order of the lines and rows of a chart.

use std::collections::HashMap;

use crate::model::{Entity, ProcessId, Table, numbering};

/// Names of the run's processes on GPUs.
#[derive(Debug, Default)]
pub(super) struct EntityLabels {
    names: HashMap<ProcessId, String>,
}

/// The run's processes first, then by start time and pid, then by name with numbers compared by
/// value.
pub(super) type Order = (bool, u64, u32, Vec<(String, u64)>);

impl EntityLabels {
    /// Adds the processes on GPUs at a tick. Names are known for the run's processes only.
    pub(super) fn learn(&mut self, table: &Table, name_of: impl Fn(&ProcessId) -> Option<String>) {
        for entity in table.entities() {
            if let Entity::OnGpu(_, id) = entity
                && let Some(name) = name_of(id)
            {
                self.names.insert(*id, name);
            }
        }
    }

    /// The name of an entity.
    pub(super) fn name(&self, entity: Entity) -> String {
        match entity {
            Entity::Single => String::new(),
            Entity::Cpu(number) => format!("CPU {number}"),
            Entity::Process(id) => format!("process {}", numbering::shown(id.pid)),
            Entity::Named(name) => name.to_string(),
            Entity::OnGpu(gpu, id) => {
                // Of other processes only the pid is recorded.
                let name = self.names.get(&id).map_or("not the run's", String::as_str);
                format!("{name} {} · {gpu}", numbering::shown(id.pid))
            }
        }
    }

    /// The sort key of an entity.
    pub(super) fn order(&self, entity: &Entity) -> Order {
        match entity {
            Entity::Single => (false, 0, 0, Vec::new()),
            Entity::Cpu(number) => (false, u64::from(*number), 0, Vec::new()),
            Entity::Process(id) => (false, id.started, id.pid, Vec::new()),
            Entity::Named(name) => (false, 0, 0, numbered(name.as_str())),
            Entity::OnGpu(gpu, id) => {
                (!self.names.contains_key(id), id.started, id.pid, numbered(gpu.as_str()))
            }
        }
    }
}

/// A name split into text and numbers: `nvidia2` sorts before `nvidia10`.
fn numbered(name: &str) -> Vec<(String, u64)> {
    let mut pieces: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut was_digit = false;
    for letter in name.chars() {
        let digit = letter.to_digit(10);
        if was_digit && digit.is_none() {
            pieces.push((String::new(), 0));
        }
        was_digit = digit.is_some();
        if let Some((word, number)) = pieces.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                None => word.push(letter),
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_sorted_by_number_not_by_text() {
        let mut names = ["nvidia10", "nvidia2", "nvidia2:1", "amd3", "node-b/nvidia0", "nvidia2:0"];
        names.sort_by_cached_key(|name| numbered(name));
        let wanted = ["amd3", "node-b/nvidia0", "nvidia2", "nvidia2:0", "nvidia2:1", "nvidia10"];
        assert_eq!(names, wanted);
    }
}
