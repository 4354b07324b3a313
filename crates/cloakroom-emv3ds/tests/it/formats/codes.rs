//! Codes.

use cloakroom_emv3ds::Version;
use serde_json::json;

use super::{V210, V220, V231, accepts, check};

#[test]
fn codes_depend_on_the_version() {
    let requestor = "threeDSRequestorAuthenticationInd";
    check(
        requestor,
        &[V210, V220],
        &["01", "06"],
        &["00", "07", "1", "10"],
    );
    check(requestor, &[V231], &["01", "07", "10"], &["11", "00"]);
    check("threeRIInd", &[V210], &["01", "05"], &["06", "12", "00"]);
    check("threeRIInd", &[V220], &["06", "12"], &["13", "00", "6"]);
    check("threeRIInd", &[V231], &["12", "19"], &["20", "00"]);
    let challenge = "threeDSRequestorChallengeInd";
    check(challenge, &[V210], &["01", "04", "90"], &["05", "09", "79"]);
    check(
        challenge,
        &[V220],
        &["05", "09", "80", "99"],
        &["10", "00", "9"],
    );
    check(challenge, &[V231], &[], &["01"]);
    for (list, good) in [
        (json!(["01"]), true),
        (json!(["01", "09"]), true),
        (json!([]), false),
        (json!(["01", "02", "03"]), false),
        (json!(["00"]), false),
    ] {
        assert_eq!(accepts(challenge, V231, &list), good, "{list}");
        assert!(!accepts(challenge, V220, &list));
    }
    let method = "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod";
    check(method, &[V210], &["06"], &["07", "08"]);
    check(method, &[V220], &["07", "08"], &["09"]);
}

#[test]
fn codes_match_the_specification() {
    check(
        "threeDSRequestorDecReqInd",
        &[V220],
        &["Y", "N"],
        &["F", "B", "y"],
    );
    check(
        "threeDSRequestorDecReqInd",
        &[V231],
        &["Y", "N", "F", "B"],
        &["U"],
    );
    check(
        "browserColorDepth",
        &Version::ALL,
        &["1", "4", "8", "15", "16", "24", "32", "48"],
        &["2", "30", "024", "64"],
    );
    check(
        "transType",
        &Version::ALL,
        &["01", "03", "10", "11", "28"],
        &["02", "04", "29"],
    );
    check(
        "acctType",
        &Version::ALL,
        &["01", "02", "03", "80", "99"],
        &["04", "79", "00"],
    );
    check(
        "threeDSCompInd",
        &Version::ALL,
        &["Y", "N", "U"],
        &["y", "X"],
    );
    check(
        "messageCategory",
        &Version::ALL,
        &["01", "02"],
        &["03", "1"],
    );
    check(
        "deviceChannel",
        &Version::ALL,
        &["01", "02", "03"],
        &["04", "00"],
    );
}
