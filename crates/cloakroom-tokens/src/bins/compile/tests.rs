//! Tests of nested, adjacent and conflicting ranges.

use super::*;
use crate::bins::number::CardNumber;
use crate::bins::row::Cells;

/// Low, high and segment.
type PlainRow<'a> = (&'a str, &'a str, &'a str);

fn compile(rows: &[PlainRow<'_>]) -> Result<Table, Vec<String>> {
    let mut builder = TableBuilder::default();
    for (number, (low, high, segment)) in (1..).zip(rows) {
        let mut cells = Cells::default();
        cells.set(Column::Low, low);
        cells.set(Column::High, high);
        cells.set(Column::Segment, segment);
        builder
            .add(number, Row::check(&cells, false).unwrap())
            .unwrap();
    }
    let to_text = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
    builder.finish().map_err(to_text)
}

fn segment<'a>(table: &'a Table, number: &str) -> &'a str {
    let number = CardNumber::parse(number).unwrap();
    table
        .find(number)
        .and_then(|known| known.segment)
        .unwrap_or("-")
}

#[test]
fn the_narrowest_range_wins() {
    let table = compile(&[
        ("40000010", "40000019", "inner"),
        ("400000", "400009", "outer"),
        ("4000001500000000", "4000001500000009", "exact"),
        ("40000012", "", "innermost"),
        ("40000019", "", "last"),
        ("400010", "400010", "next"),
    ])
    .unwrap();

    let cases = [
        ("3999999999999999", "-"),
        ("4000000000000000", "outer"),
        ("4000000999999999", "outer"),
        ("4000001000000000", "inner"),
        ("4000001199999999", "inner"),
        ("4000001200000000", "innermost"),
        ("4000001299999999999", "innermost"),
        ("4000001300000000", "inner"),
        ("4000001499999999", "inner"),
        ("4000001500000000", "exact"),
        ("4000001500000009", "exact"),
        ("4000001500000010", "inner"),
        ("400000150000000", "inner"),
        ("4000001500000000000", "inner"),
        ("4000001899999999", "inner"),
        ("4000001900000000", "last"),
        ("4000001999999999", "last"),
        ("4000002000000000", "outer"),
        ("4000099999999999", "outer"),
        ("4000100000000000", "next"),
        ("4000109999999999", "next"),
        ("4000110000000000", "-"),
    ];
    for (number, expected) in cases {
        assert_eq!(segment(&table, number), expected, "{number}");
    }
}

#[test]
fn ranges_up_to_the_highest_number_are_closed() {
    let table = compile(&[("999999", "", "any"), ("9999999999999999999", "", "one")]).unwrap();

    assert_eq!(segment(&table, "9999999999999999999"), "one");
    assert_eq!(segment(&table, "9999999999999999998"), "any");
    assert_eq!(segment(&table, "9999980000000000"), "-");
}

#[test]
fn adjacent_and_duplicate_ranges_with_equal_attributes_are_merged() {
    let rows = [
        ("400000", "400001", "a"),
        ("400002", "400003", "a"),
        ("400002", "400003", "a"),
        ("400004", "", "b"),
    ];

    let table = compile(&rows).unwrap();

    assert_eq!(table.records.len(), 2);
    assert_eq!(table.spaces[0].iter().count(), 3);
    assert_eq!(table.rows(), 4);
}

#[test]
fn conflicting_ranges_are_rejected() {
    let cases: [(&[PlainRow<'_>], &str); 3] = [
        (
            &[("400000", "400005", "a"), ("400005", "400009", "b")],
            "row 2, column low: overlaps the range of another row, and neither lies inside \
             the other (row 1)",
        ),
        (
            &[("400000", "", "a"), ("400000", "", "b")],
            "row 2, column low: is the same range as in another row, with other details (row 1)",
        ),
        (
            &[
                ("4000000000000000", "4000000000000005", "a"),
                ("4000000000000002", "4000000000000007", "a"),
            ],
            "row 2, column low: overlaps the range of another row, and neither lies inside \
             the other (row 1)",
        ),
    ];
    for (rows, expected) in cases {
        assert_eq!(compile(rows).unwrap_err(), [expected]);
    }
}

#[test]
fn lookups_in_a_large_table_match_a_linear_search() {
    let rows: Vec<(String, String)> = (0..400)
        .map(|n| {
            (
                format!("{}", 40_000_000 + n * 7),
                format!("{}", 40_000_003 + n * 7),
            )
        })
        .collect();
    let rows: Vec<PlainRow<'_>> = rows
        .iter()
        .zip(["a", "b", "c"].into_iter().cycle())
        .map(|((low, high), segment)| (low.as_str(), high.as_str(), segment))
        .collect();
    let table = compile(&rows).unwrap();

    for prefix in 39_999_990..40_002_810 {
        let text = prefix.to_string();
        let expected = rows
            .iter()
            .find(|(low, high, _)| (*low..=*high).contains(&text.as_str()))
            .map_or("-", |row| row.2);
        assert_eq!(
            segment(&table, &format!("{prefix}00000000")),
            expected,
            "{prefix}"
        );
    }
}
