//! Compares the table with a linear list as reference model.

use cloakroom_emv3ds::{RangeTable, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::{pres, range};

/// Bounds from a small space of numbers, so that changes overlap.
fn bounds() -> impl Strategy<Value = (u64, u64)> {
    (0u64..40, 0u64..6).prop_map(|(start, length)| (start, start + length))
}

fn change() -> impl Strategy<Value = (&'static str, (u64, u64))> {
    let action = prop::sample::select(&["A", "A", "A", "D", "M"][..]);
    (action, bounds())
}

fn number(small: u64) -> String {
    format!("400000000000{small:04}")
}

/// A list of ranges with linear search.
#[derive(Clone, Default)]
struct Model(Vec<(u64, u64, String)>);

impl Model {
    fn apply(&mut self, action: &str, start: u64, end: u64, mark: &str) -> bool {
        let place = self.0.iter().position(|(s, e, _)| (*s, *e) == (start, end));
        match (action, place) {
            ("A", _) if self.0.iter().all(|(s, e, _)| *e < start || end < *s) => {
                self.0.push((start, end, mark.to_owned()));
            }
            ("D", Some(place)) => {
                self.0.remove(place);
            }
            ("M", Some(place)) => self.0[place].2 = mark.to_owned(),
            _ => return false,
        }
        true
    }
}

proptest! {
    #[test]
    fn the_table_behaves_like_a_linear_list(
        responses in vec((any::<bool>(), vec(change(), 0..6)), 1..20)
    ) {
        let mut table = RangeTable::default();
        let mut model = Model::default();
        for (step, (is_full, changes)) in responses.into_iter().enumerate() {
            let is_full = is_full && step % 4 == 0;
            let mark = format!("{:02}", step + 10);
            let mut next = if is_full { Model::default() } else { model.clone() };
            let fits = changes.iter().all(|(action, (start, end))| next.apply(action, *start, *end, &mark));
            let elements = changes.iter().map(|(action, (start, end))| {
                let mut element = range(&number(*start), &number(*end), action);
                element["acsInfoInd"] = json!([mark]);
                element
            });
            let pres = pres(Version::V2_2_0, &mark, elements.collect());
            prop_assert_eq!(table.apply(&pres, is_full).is_ok(), fits);
            if fits {
                model = next;
                prop_assert_eq!(table.serial(), Some(mark.as_str()));
            }
            prop_assert_eq!(table.len(), model.0.len());
            for small in 0..50 {
                let expected = model.0.iter().find(|(s, e, _)| (*s..=*e).contains(&small));
                let found = table.find(&number(small));
                let fields = found.map(|range| {
                    let information = range.acs_information[0].clone();
                    (range.start.clone(), range.end.clone(), information)
                });
                prop_assert_eq!(fields, expected.map(|(s, e, mark)| (number(*s), number(*e), mark.clone())));
            }
        }
    }
}
