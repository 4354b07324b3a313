//! The field tables: versions and device channels of fields.

use cloakroom_emv3ds::codes::DeviceChannel;
use cloakroom_emv3ds::{Format, MessageKind, Version, field, field_for, fields};

use crate::samples::{Case, areq, areq_options};

#[test]
fn fields_exist_in_versions_and_on_channels() {
    let exists = |path, version, channel| {
        field_for(MessageKind::AReq, path, version, Some(channel)).is_some()
    };
    let (app, browser, three_ri) = (
        DeviceChannel::App,
        DeviceChannel::Browser,
        DeviceChannel::ThreeRi,
    );
    for (path, on) in [
        ("browserUserAgent", [false, true, false]),
        ("threeDSCompInd", [false, true, false]),
        ("notificationURL", [false, true, false]),
        ("sdkTransID", [true, false, false]),
        ("deviceRenderOptions.sdkUiType", [true, false, false]),
        ("threeDSRequestorChallengeInd", [true, true, false]),
        ("threeDSRequestorAuthenticationInfo", [true, true, false]),
        ("threeDSRequestorAuthenticationInd", [true, true, false]),
        ("addrMatch", [true, true, false]),
        ("threeRIInd", [false, false, true]),
        (
            "threeDSRequestorPriorAuthenticationInfo",
            [true, true, true],
        ),
        ("email", [true, true, true]),
    ] {
        for version in Version::ALL {
            assert_eq!(
                [app, browser, three_ri].map(|channel| exists(path, version, channel)),
                on,
                "{path}"
            );
        }
    }
    for (path, versions) in [
        ("browserJavascriptEnabled", [false, true, true]),
        ("threeDSRequestorDecReqInd", [false, true, true]),
        ("threeDSRequestorDecMaxTime", [false, true, true]),
        ("threeDSReqAuthMethodInd", [false, true, false]),
        ("whiteListStatus", [false, true, false]),
        ("trustListStatus", [false, false, true]),
        ("acceptLanguage", [false, false, true]),
        ("acquirerCountryCode", [false, false, true]),
        ("recurringInd.amountInd", [false, false, true]),
        ("sellerInfo", [false, false, true]),
    ] {
        assert_eq!(
            Version::ALL.map(|version| exists(path, version, browser)),
            versions,
            "{path}"
        );
    }
    for path in [
        "purchaseAmount",
        "purchaseCurrency",
        "purchaseExponent",
        "purchaseDate",
    ] {
        assert_eq!(
            Version::ALL.map(|version| exists(path, version, three_ri)),
            [false, true, true]
        );
    }
}

#[test]
fn a_version_and_channel_has_one_row_per_path() {
    let channels = [
        None,
        Some(DeviceChannel::App),
        Some(DeviceChannel::Browser),
        Some(DeviceChannel::ThreeRi),
    ];
    for kind in MessageKind::ALL {
        for version in Version::ALL {
            for channel in channels {
                let rows: Vec<_> = fields(kind)
                    .filter(|row| row.applies(version, channel))
                    .collect();
                for row in &rows {
                    let same = rows.iter().filter(|other| other.path == row.path).count();
                    assert_eq!(same, 1, "{kind} {} {version} {channel:?}", row.path);
                    let parent = row.path.rsplit_once('.').map(|(parent, _)| parent);
                    let parent = parent.map(|parent| rows.iter().any(|other| other.path == parent));
                    assert_ne!(parent, Some(false), "{kind} {} has no object", row.path);
                }
            }
        }
    }
}

#[test]
fn formats_and_rules_have_descriptions() {
    let of = |path| field(MessageKind::AReq, path).unwrap();
    let format = |path| of(path).format.to_string();
    assert_eq!(format("purchaseAmount"), "1 to 48 digits");
    assert_eq!(format("recurringExpiry"), "a date as YYYYMMDD");
    assert_eq!(format("mcc"), "4 digits");
    assert_eq!(format("addrMatch"), "one of Y, N");
    assert_eq!(format("payTokenInd"), "true");
    assert_eq!(format("acctType"), "one of 01, 02, 03, 80 to 99");
    assert_eq!(
        format("threeDSRequestorDecMaxTime"),
        "a number from 00001 to 10080"
    );
    assert_eq!(format("purchaseInstalData"), "a number from 2 to 999");
    assert_eq!(of("mcc").inclusion.to_string(), "required for payments");
    assert_eq!(of("acctNumber").inclusion.to_string(), "required");
    assert_eq!(of("email").inclusion.to_string(), "optional");
    assert_eq!(
        of("browserLanguage").until,
        Version::V2_2_0,
        "the row of the most common version"
    );
    assert_eq!(of("acceptLanguage").since, Version::V2_3_1);
    assert!(field(MessageKind::AReq, "unheardOf").is_none());
    for kind in MessageKind::ALL {
        assert!(fields(kind).all(|row| !row.format.to_string().is_empty()));
    }
    assert_eq!(
        Format::List {
            of: &Format::Date,
            count: 2
        }
        .to_string(),
        "a list of 1 to 2, each a date as YYYYMMDD"
    );
}

#[test]
fn fields_of_the_samples_are_in_the_table() {
    for name in areq_options().keys().chain(
        areq(Case {
            version: Version::V2_3_1,
            channel: "02",
            category: "01",
            indicator: "03",
        })
        .keys(),
    ) {
        assert!(
            name == "messageType" || field(MessageKind::AReq, name).is_some(),
            "{name}"
        );
    }
}
