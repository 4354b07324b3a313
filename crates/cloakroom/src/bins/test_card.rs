//! Published test numbers and what they show; only test tenants see this table.

use super::number::CardNumber;
use super::record::{Country, Known};
use super::{Brand, Funding};

use super::Brand::{AmericanExpress, Discover, Jcb, Mastercard, Unionpay, Visa};
use super::Funding::{Credit, Debit};

/// Numbers of one length, and what they show.
struct TestRange {
    low: u64,
    high: u64,
    funding: Funding,
    brand: Brand,
    country: &'static str,
}

const fn range(low: u64, high: u64, shows: (Funding, Brand, &'static str)) -> TestRange {
    let (funding, brand, country) = shows;
    TestRange {
        low,
        high,
        funding,
        brand,
        country,
    }
}

const fn single(number: u64, shows: (Funding, Brand, &'static str)) -> TestRange {
    range(number, number, shows)
}

/// Two published ranges end before their own example card; here they reach it.
const RANGES: [TestRange; 19] = [
    single(SCA_REQUIRED, (Credit, Visa, "BM")),
    range(
        5_555_555_555_550_000,
        5_555_555_555_560_000,
        (Credit, Mastercard, "TR"),
    ),
    single(2_720_394_612_465_072, (Credit, Mastercard, "US")),
    range(
        378_282_246_310_000,
        378_282_246_310_010,
        (Credit, AmericanExpress, "FO"),
    ),
    range(
        4_000_056_655_665_550,
        4_000_056_655_665_556,
        (Credit, Visa, "CL"),
    ),
    range(
        6_200_000_000_000_000,
        6_200_000_000_000_005,
        (Credit, Unionpay, "SJ"),
    ),
    range(
        6_011_010_000_000_000,
        6_011_010_000_000_005,
        (Debit, Discover, "BM"),
    ),
    single(6_011_981_111_111_113, (Debit, Discover, "US")),
    range(
        3_566_002_020_360_504,
        3_566_002_020_360_506,
        (Debit, Jcb, "BM"),
    ),
    single(3_530_111_333_300_000, (Debit, Jcb, "US")),
    range(
        378_282_246_310_011,
        378_282_246_310_020,
        (Debit, Visa, "BM"),
    ),
    range(
        4_005_550_000_081_018,
        4_005_550_000_081_020,
        (Debit, Visa, "BM"),
    ),
    range(
        5_112_000_400_000_000,
        5_112_000_400_000_001,
        (Debit, Mastercard, "BM"),
    ),
    range(
        5_112_010_000_000_003,
        5_112_010_100_000_002,
        (Debit, Mastercard, "BM"),
    ),
    single(5_200_828_282_828_210, (Debit, Mastercard, "US")),
    range(
        6_011_000_990_139_420,
        6_011_000_990_139_430,
        (Credit, Discover, "BM"),
    ),
    single(6_011_000_995_500_000, (Credit, Discover, "US")),
    single(5_589_092_000_000_000_006, (Debit, Mastercard, "US")),
    single(5_589_620_000_000_000_007, (Debit, Mastercard, "US")),
];

/// The one test card that says its issuer demands strong customer authentication.
const SCA_REQUIRED: u64 = 4_242_424_242_424_242;

/// Cards for 3-D Secure tests. All of them count as credit, also inside a range of debit cards: one
/// exact number says more than a range.
const THREEDS_CARDS: [u64; 57] = [
    34_343_434_343_434,
    36_148_900_647_913,
    36_700_102_000_000,
    122_000_000_000_003,
    340_000_000_004_001,
    370_000_000_000_002,
    3_528_000_700_000_000,
    3_566_002_020_360_505,
    3_566_006_663_297_692,
    4_000_000_000_000_341,
    4_000_020_000_000_000,
    4_005_562_231_212_123,
    4_005_571_701_111_111,
    4_055_011_111_111_111,
    4_100_000_000_000_003,
    4_111_111_111_111_111,
    4_150_580_996_517_927,
    4_200_000_000_000_002,
    4_200_000_000_000_003,
    4_200_000_000_000_004,
    4_200_000_000_000_005,
    4_200_000_000_000_006,
    4_200_000_000_000_007,
    4_200_000_000_000_008,
    4_200_000_000_000_009,
    4_200_000_000_000_010,
    4_200_000_000_000_011,
    4_200_000_000_000_012,
    4_200_000_000_000_013,
    4_200_000_000_000_014,
    4_200_000_000_000_015,
    4_200_000_000_000_016,
    4_200_000_000_000_017,
    4_264_281_500_001_119,
    4_264_281_500_003_339,
    4_264_281_511_112_228,
    4_444_333_322_221_111,
    4_462_030_000_000_000,
    4_761_369_980_320_253,
    4_917_610_000_000_000,
    5_019_717_010_103_742,
    5_200_000_000_001_104,
    5_204_247_750_001_471,
    5_405_001_111_111_116,
    5_405_001_111_111_165,
    5_424_180_000_000_171,
    5_424_180_011_110_001,
    5_424_180_011_113_336,
    5_427_660_064_241_339,
    5_454_545_454_545_454,
    5_555_555_555_554_444,
    6_011_000_400_000_000,
    6_011_361_000_001_115,
    6_011_361_000_008_888,
    6_011_361_011_110_004,
    6_011_601_160_116_011,
    6_759_649_826_438_453,
];

/// What a test number shows; nothing when it is none.
pub(super) fn find(number: CardNumber) -> Option<Known<'static>> {
    let value = number.value();
    // Leading zeros would make a longer number equal: numbers are compared among equals in length.
    if value.checked_ilog10().map(|digits| digits + 1) != Some(number.digits()) {
        return None;
    }
    let is_threeds = THREEDS_CARDS.binary_search(&value).is_ok();
    let range = RANGES
        .iter()
        .find(|range| (range.low..=range.high).contains(&value));
    match range {
        None if is_threeds => Some(Known {
            brand: Brand::infer(number),
            funding: Some(Credit),
            ..Known::default()
        }),
        None => None,
        Some(range) => Some(Known {
            brand: Some(range.brand),
            funding: Some(if is_threeds { Credit } else { range.funding }),
            needs_sca: value == SCA_REQUIRED,
            country: Country::parse(range.country),
            ..Known::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published table, row by row: from, to, funding, brand, country.
    const PUBLISHED: [(&str, &str, &str, &str, &str); 19] = [
        (
            "4242424242424242",
            "4242424242424242",
            "credit",
            "visa",
            "BM 060 Bermuda",
        ),
        (
            "5555555555550000",
            "5555555555560000",
            "credit",
            "mastercard",
            "TR 792 Turkiye",
        ),
        (
            "2720394612465072",
            "2720394612465072",
            "credit",
            "mastercard",
            "US 840 United States",
        ),
        (
            "378282246310000",
            "378282246310010",
            "credit",
            "american-express",
            "FO 234 Faroe Islands",
        ),
        (
            "4000056655665550",
            "4000056655665556",
            "credit",
            "visa",
            "CL 152 Chile",
        ),
        (
            "6200000000000000",
            "6200000000000005",
            "credit",
            "unionpay",
            "SJ 744 Svalbard and Jan Mayen",
        ),
        (
            "6011010000000000",
            "6011010000000005",
            "debit",
            "discover",
            "BM 060 Bermuda",
        ),
        (
            "6011981111111113",
            "6011981111111113",
            "debit",
            "discover",
            "US 840 United States",
        ),
        (
            "3566002020360504",
            "3566002020360506",
            "debit",
            "jcb",
            "BM 060 Bermuda",
        ),
        (
            "3530111333300000",
            "3530111333300000",
            "debit",
            "jcb",
            "US 840 United States",
        ),
        (
            "378282246310011",
            "378282246310020",
            "debit",
            "visa",
            "BM 060 Bermuda",
        ),
        (
            "4005550000081018",
            "4005550000081020",
            "debit",
            "visa",
            "BM 060 Bermuda",
        ),
        (
            "5112000400000000",
            "5112000400000001",
            "debit",
            "mastercard",
            "BM 060 Bermuda",
        ),
        (
            "5112010000000003",
            "5112010100000002",
            "debit",
            "mastercard",
            "BM 060 Bermuda",
        ),
        (
            "5200828282828210",
            "5200828282828210",
            "debit",
            "mastercard",
            "US 840 United States",
        ),
        (
            "6011000990139420",
            "6011000990139430",
            "credit",
            "discover",
            "BM 060 Bermuda",
        ),
        (
            "6011000995500000",
            "6011000995500000",
            "credit",
            "discover",
            "US 840 United States",
        ),
        (
            "5589092000000000006",
            "5589092000000000006",
            "debit",
            "mastercard",
            "US 840 United States",
        ),
        (
            "5589620000000000007",
            "5589620000000000007",
            "debit",
            "mastercard",
            "US 840 United States",
        ),
    ];

    fn found(number: &str) -> Option<Known<'static>> {
        find(CardNumber::parse(number).unwrap())
    }

    #[test]
    fn every_published_range_shows_what_is_published() {
        for (from, to, funding, brand, country) in PUBLISHED {
            for number in [from, to] {
                let known = found(number).unwrap();
                let place = known.country.unwrap();
                let told = format!("{} {} {}", place.alpha2(), place.numeric(), place.name());
                assert_eq!(known.funding.unwrap().name(), funding, "{number}");
                assert_eq!(known.brand.unwrap().name(), brand, "{number}");
                assert_eq!(told, country, "{number}");
                assert_eq!(known.needs_sca, number == "4242424242424242", "{number}");
            }
            let below = (from.parse::<u64>().unwrap() - 1).to_string();
            let above = (to.parse::<u64>().unwrap() + 1).to_string();
            for outside in [below, above] {
                let is_next_row = PUBLISHED
                    .iter()
                    .any(|row| row.0 == outside || row.1 == outside);
                assert_eq!(found(&outside).is_some(), is_next_row, "{outside}");
            }
        }
    }

    #[test]
    fn a_longer_or_shorter_number_is_another_number() {
        for number in [
            "04242424242424242",
            "42424242424242420",
            "0378282246310005",
            "424242424242424",
        ] {
            assert!(found(number).is_none(), "{number}");
        }
    }

    #[test]
    fn every_card_for_threeds_tests_counts_as_credit() {
        assert!(THREEDS_CARDS.is_sorted());
        for card in THREEDS_CARDS {
            let known = found(&card.to_string()).unwrap();
            assert_eq!(known.funding, Some(Credit), "{card}");
        }
        let cases = [
            ("4200000000000002", Some("visa"), None),
            ("4200000000000017", Some("visa"), None),
            ("4100000000000003", Some("visa"), None),
            ("5405001111111165", Some("mastercard"), None),
            ("6759649826438453", Some("mastercard"), None),
            ("36148900647913", Some("diners-club"), None),
            ("122000000000003", None, None),
            ("3566002020360505", Some("jcb"), Some("BM")),
            ("5555555555554444", Some("mastercard"), Some("TR")),
        ];
        for (number, brand, country) in cases {
            let known = found(number).unwrap();
            assert_eq!(known.brand.map(Brand::name), brand, "{number}");
            assert_eq!(known.country.map(Country::alpha2), country, "{number}");
        }
        assert!(found("4200000000000001").is_none());
        assert!(found("4200000000000018").is_none());
    }
}
