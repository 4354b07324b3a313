//! Published test card numbers and their attributes, for test tenants only.

use super::Brand::{AmericanExpress, Discover, Jcb, Mastercard, Unionpay, Visa};
use super::Funding::{Credit, Debit};
use super::number::CardNumber;
use super::record::{CardAttributes, Country};
use super::{Brand, Funding};

/// Test numbers of one length, and their attributes.
struct TestRange {
    low: u64,
    high: u64,
    funding: Funding,
    brand: Brand,
    country: &'static str,
}

const fn range(
    low: u64,
    high: u64,
    funding: Funding,
    brand: Brand,
    country: &'static str,
) -> TestRange {
    TestRange {
        low,
        high,
        funding,
        brand,
        country,
    }
}

const fn single(number: u64, funding: Funding, brand: Brand, country: &'static str) -> TestRange {
    range(number, number, funding, brand, country)
}

/// Two published ranges end before their own example card; here they include it.
#[rustfmt::skip]
const RANGES: [TestRange; 19] = [
    single(SCA_REQUIRED, Credit, Visa, "BM"),
    range(5_555_555_555_550_000, 5_555_555_555_560_000, Credit, Mastercard, "TR"),
    single(2_720_394_612_465_072, Credit, Mastercard, "US"),
    range(378_282_246_310_000, 378_282_246_310_010, Credit, AmericanExpress, "FO"),
    range(4_000_056_655_665_550, 4_000_056_655_665_556, Credit, Visa, "CL"),
    range(6_200_000_000_000_000, 6_200_000_000_000_005, Credit, Unionpay, "SJ"),
    range(6_011_010_000_000_000, 6_011_010_000_000_005, Debit, Discover, "BM"),
    single(6_011_981_111_111_113, Debit, Discover, "US"),
    range(3_566_002_020_360_504, 3_566_002_020_360_506, Debit, Jcb, "BM"),
    single(3_530_111_333_300_000, Debit, Jcb, "US"),
    range(378_282_246_310_011, 378_282_246_310_020, Debit, Visa, "BM"),
    range(4_005_550_000_081_018, 4_005_550_000_081_020, Debit, Visa, "BM"),
    range(5_112_000_400_000_000, 5_112_000_400_000_001, Debit, Mastercard, "BM"),
    range(5_112_010_000_000_003, 5_112_010_100_000_002, Debit, Mastercard, "BM"),
    single(5_200_828_282_828_210, Debit, Mastercard, "US"),
    range(6_011_000_990_139_420, 6_011_000_990_139_430, Credit, Discover, "BM"),
    single(6_011_000_995_500_000, Credit, Discover, "US"),
    single(5_589_092_000_000_000_006, Debit, Mastercard, "US"),
    single(5_589_620_000_000_000_007, Debit, Mastercard, "US"),
];

/// The only test card whose issuer requires strong customer authentication.
const SCA_REQUIRED: u64 = 4_242_424_242_424_242;

/// Cards for 3-D Secure tests. All of them are credit cards, even inside a range of debit cards: an exact number takes
/// precedence over a range.
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

/// The attributes of a test number; `None` for other numbers.
pub(super) fn find(number: CardNumber) -> Option<CardAttributes<'static>> {
    let value = number.value();
    // Rejects leading zeros: only numbers of the same length match.
    if value.checked_ilog10().map(|digits| digits + 1) != Some(number.digits()) {
        return None;
    }
    let is_threeds = THREEDS_CARDS.binary_search(&value).is_ok();
    let range = RANGES
        .iter()
        .find(|range| (range.low..=range.high).contains(&value));
    match range {
        None if is_threeds => Some(CardAttributes {
            brand: Brand::infer(number),
            funding: Some(Credit),
            ..CardAttributes::default()
        }),
        None => None,
        Some(range) => Some(CardAttributes {
            brand: Some(range.brand),
            funding: Some(if is_threeds { Credit } else { range.funding }),
            needs_sca: value == SCA_REQUIRED,
            country: Country::parse(range.country),
            ..CardAttributes::default()
        }),
    }
}

#[cfg(test)]
mod tests;
