//! Properties of the table.

use super::*;

fn passes_luhn(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (u32::from(digit - b'0'), at % 2) {
            (digit, 0) => digit,
            (digit, _) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[test]
fn cards_are_unique_and_have_the_right_luhn_flag() {
    let mut wrong = Vec::new();
    for card in test_cards() {
        if passes_luhn(card.number) != card.is_luhn_valid {
            wrong.push(card.number);
        }
        let same = |other: &&TestCard| other.number == card.number;
        assert_eq!(test_cards().iter().filter(same).count(), 1);
        if card.scenario != Scenario::WithoutThreeds {
            assert!(card.network().is_some(), "{}", card.number);
        }
    }
    assert_eq!(wrong, Vec::<&str>::new());
}
