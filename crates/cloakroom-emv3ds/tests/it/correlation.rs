//! An `ARes` against its `AReq`, and an `RReq` against its `ARes`.

use cloakroom_emv3ds::codes::{ChallengeType, DeviceChannel, TransStatus};
use cloakroom_emv3ds::{
    AReq, ARes, CardholderInfo, Fault, Message, MessageKind, RReq, Version, field_for, read,
};
use serde_json::{Value, json};

use crate::samples::{Case, Fields, areq, ares, cases, rreq, statuses, text};

const OTHER_ID: &str = "11111111-2222-4333-8444-555555555555";

fn request(case: Case) -> AReq {
    let mut fields = areq(case);
    if case.version > Version::V2_1_0 {
        fields.insert("threeDSRequestorDecReqInd".into(), "Y".into());
        fields.insert("threeDSRequestorDecMaxTime".into(), "00060".into());
    }
    AReq::from_object(fields).unwrap()
}

/// Reads an `ARes` and validates it against its request.
fn read_ares(fields: &Fields, request: &AReq) -> Result<ARes, Fault> {
    match read(&text(fields), &[MessageKind::ARes], &Version::ALL)? {
        Message::ARes(response) => response.answers(request).map(|()| *response),
        _ => panic!("not an ARes"),
    }
}

fn read_rreq(fields: &Fields, response: &ARes, case: Case) -> Result<RReq, Fault> {
    let channel = DeviceChannel::from_code(case.channel).unwrap();
    match read(&text(fields), &[MessageKind::RReq], &Version::ALL)? {
        Message::RReq(result) => result.concludes(response, channel).map(|()| *result),
        _ => panic!("not an RReq"),
    }
}

fn code_and_detail<T>(result: Result<T, Fault>) -> (&'static str, String) {
    match result {
        Ok(_) => ("", String::new()),
        Err(fault) => (fault.code.code(), fault.detail),
    }
}

fn reduced_cases() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.indicator == "02");
    cases
}

#[test]
fn an_ares_requires_the_fields_of_its_status_channel_and_category() {
    for case in reduced_cases() {
        let request = request(case);
        for status in statuses(case) {
            let fields = ares(case, status);
            let whole = read_ares(&fields, &request);
            let whole = whole.unwrap_or_else(|fault| panic!("{case:?} {status}: {fault}"));
            assert_eq!(
                whole.trans_status.is_some(),
                fields.contains_key("transStatus")
            );
            for name in fields.keys().filter(|name| *name != "messageType") {
                // `transStatus` is required for payments only.
                let payment = case.category == "01";
                let expected = match name.as_str() {
                    "transStatus" if !payment => ("", String::new()),
                    _ => ("201", name.clone()),
                };
                let mut fewer = fields.clone();
                fewer.shift_remove(name);
                assert_eq!(
                    code_and_detail(read_ares(&fewer, &request)),
                    expected,
                    "{case:?} {status}"
                );
            }
        }
    }
}

#[test]
fn an_ares_must_match_the_transaction_of_its_request() {
    for case in reduced_cases() {
        let request = request(case);
        let fields = ares(case, "U");
        let with = |name: &str, value: Value| {
            let mut changed = fields.clone();
            changed.insert(name.into(), value);
            code_and_detail(read_ares(&changed, &request))
        };
        let unknown_id = |name: &str| ("301", name.to_owned());
        assert_eq!(
            with("threeDSServerTransID", OTHER_ID.into()),
            unknown_id("threeDSServerTransID")
        );
        let upper = request.threeds_server_trans_id.to_uppercase();
        assert_eq!(with("threeDSServerTransID", upper.into()).0, "");
        if case.channel == "01" {
            assert_eq!(
                with("sdkTransID", OTHER_ID.into()),
                unknown_id("sdkTransID")
            );
        }
        let other = if case.version == Version::V2_1_0 {
            "2.2.0"
        } else {
            "2.1.0"
        };
        let expected = ("203", "messageVersion".to_owned());
        assert_eq!(with("messageVersion", other.into()), expected);
    }
}

#[test]
fn an_ares_must_have_a_status_that_the_request_allows() {
    let unexpected = ("203", "transStatus".to_owned());
    for case in reduced_cases() {
        let with_decoupled = request(case);
        let without_decoupled = AReq::from_object(areq(case)).unwrap();
        let decoupled = ares(case, "D");
        if case.version == Version::V2_1_0 {
            assert_eq!(
                code_and_detail(read_ares(&decoupled, &with_decoupled)).0,
                "203",
                "no such status"
            );
            assert_eq!(
                code_and_detail(read_ares(&ares(case, "I"), &with_decoupled)).0,
                if case.category == "01" { "203" } else { "" }
            );
            continue;
        }
        assert_eq!(
            code_and_detail(read_ares(&decoupled, &with_decoupled)).0,
            ""
        );
        assert_eq!(
            code_and_detail(read_ares(&decoupled, &without_decoupled)),
            unexpected
        );
        let mut declining = areq(case);
        declining.insert("threeDSRequestorDecReqInd".into(), "N".into());
        let declining = AReq::from_object(declining).unwrap();
        assert_eq!(
            code_and_detail(read_ares(&decoupled, &declining)),
            unexpected
        );
        if case.channel == "03" {
            assert_eq!(
                code_and_detail(read_ares(&ares(case, "C"), &with_decoupled)),
                unexpected
            );
        }
        let mut unconfirmed = decoupled.clone();
        unconfirmed["acsDecConInd"] = "N".into();
        assert_eq!(
            code_and_detail(read_ares(&unconfirmed, &with_decoupled)),
            ("203", "acsDecConInd".to_owned())
        );
    }
}

#[test]
fn an_rreq_requires_the_fields_of_its_status_channel_and_category() {
    for case in reduced_cases() {
        for ares_status in ["C", "D"] {
            if ares_status == "D" && case.version == Version::V2_1_0 {
                continue;
            }
            let response = ARes::from_object(ares(case, ares_status)).unwrap();
            for status in ["Y", "A", "N", "U", "R"] {
                let fields = rreq(case, ares_status, status);
                let whole = read_rreq(&fields, &response, case);
                whole.unwrap_or_else(|fault| panic!("{case:?} {status}: {fault}"));
                for name in fields.keys().filter(|name| *name != "messageType") {
                    let mut fewer = fields.clone();
                    fewer.shift_remove(name);
                    let found = code_and_detail(read_rreq(&fewer, &response, case));
                    assert_eq!(
                        found,
                        ("201", name.clone()),
                        "{case:?} {ares_status} {status}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_rreq_must_match_the_transaction_of_its_ares() {
    for case in reduced_cases() {
        let response = ARes::from_object(ares(case, "C")).unwrap();
        let fields = rreq(case, "C", "Y");
        let mut ids = vec!["threeDSServerTransID", "acsTransID", "dsTransID"];
        if case.channel == "01" {
            ids.push("sdkTransID");
        }
        for name in ids {
            let mut unknown_id = fields.clone();
            unknown_id[name] = OTHER_ID.into();
            assert_eq!(
                code_and_detail(read_rreq(&unknown_id, &response, case)),
                ("301", name.to_owned())
            );
        }
        let other = if case.version == Version::V2_1_0 {
            "2.2.0"
        } else {
            "2.1.0"
        };
        let mut fields = fields;
        fields.shift_remove("authenticationMethod");
        fields.shift_remove("authenticationType");
        fields["messageVersion"] = other.into();
        let needed = if case.category == "01" {
            ("201", "authenticationType")
        } else {
            ("203", "messageVersion")
        };
        let found = code_and_detail(read_rreq(&fields, &response, case));
        assert_eq!(found, (needed.0, needed.1.to_owned()));
    }
}

#[test]
fn allowed_statuses_depend_on_message_and_version() {
    for (version, of_ares, of_rreq) in [
        (Version::V2_1_0, "YNUACR", "YNUAR"),
        (Version::V2_2_0, "YNUACDRI", "YNUAR"),
        (Version::V2_3_1, "YNUACDRIS", "YNUARD"),
    ] {
        for (kind, statuses) in [
            (MessageKind::ARes, of_ares),
            (MessageKind::RReq, of_rreq),
            (MessageKind::CRes, "YN"),
        ] {
            let format = field_for(kind, "transStatus", version, None)
                .unwrap()
                .format;
            for status in "YNUACDRISXynu".chars() {
                let accepted = format.accepts(&json!(status));
                assert_eq!(
                    accepted,
                    statuses.contains(status),
                    "{kind} {version} {status}"
                );
            }
        }
    }
}

#[test]
fn an_ares_exposes_its_fields() {
    let case = Case {
        version: Version::V2_3_1,
        channel: "02",
        category: "01",
        indicator: "01",
    };
    let response = ARes::from_object(ares(case, "D")).unwrap();
    assert_eq!(response.trans_status, Some(TransStatus::DecoupledChallenge));
    assert_eq!(
        response.cardholder_info.as_ref().map(CardholderInfo::text),
        Some("Open your bank's app.")
    );
    assert_eq!(
        response.authentication_method.as_deref(),
        Some(&["12".to_owned()][..])
    );
    let mut fields = ares(
        Case {
            version: Version::V2_2_0,
            ..case
        },
        "Y",
    );
    fields.insert("transStatusReason".into(), "87".into());
    fields.insert("eci".into(), "N0".into());
    let response = ARes::from_object(fields).unwrap();
    assert_eq!(
        response.trans_status_reason.as_deref(),
        Some("87"),
        "unknown codes survive"
    );
    let value = response
        .authentication_value
        .as_ref()
        .map(|value| value.expose().len());
    assert_eq!(value, Some(28));
    assert_eq!(json!(response.eci), json!("N0"));
}

#[test]
fn renamed_fields_have_the_same_accessors_in_all_versions() {
    for version in [Version::V2_2_0, Version::V2_3_1] {
        let case = Case {
            version,
            channel: "02",
            category: "01",
            indicator: "01",
        };
        let list = if version == Version::V2_3_1 {
            "trustList"
        } else {
            "whiteList"
        };
        let mut result = rreq(case, "C", "Y");
        result.insert(format!("{list}Status"), "P".into());
        result.insert(format!("{list}StatusSource"), "03".into());
        let result = RReq::from_object(result).unwrap();
        assert_eq!(result.challenge_type(), Some(ChallengeType::Dynamic));
        assert_eq!(
            (result.list_status(), result.list_status_source()),
            (Some("P"), Some("03"))
        );
        let response = ARes::from_object(ares(case, "D")).unwrap();
        assert_eq!(response.challenge_type(), Some(ChallengeType::Decoupled));
        assert_eq!(response.list_status(), None);
    }
}
