// The documented test cards, and how each of them ends.

const frictionless = (status, reasonCode) => ({ method: "Y", authenticated: status, status, reasonCode });
const challenge = (status, reasonCode) => ({ method: "Y", authenticated: "challenge", status, reasonCode });

/** `refused` says which call is answered with 424, if one is. */
export const SCENARIOS = [
  {
    name: "frictionless success",
    numbers: ["5204247750001471", "6011601160116011", "340000000004001", "4200000000000002"],
    earlier: ["5555555555554444", "34343434343434"],
    ...frictionless("successful"),
  },
  {
    name: "challenge success",
    numbers: [
      "4000020000000000",
      "370000000000002",
      "3566002020360505",
      "3566006663297692",
      "4200000000000004",
    ],
    earlier: ["4917610000000000"],
    ...challenge("successful"),
  },
  {
    name: "challenge success without a method",
    numbers: ["4005562231212123", "4200000000000014"],
    ...challenge("successful"),
    method: "U",
  },
  {
    name: "mandated challenge success",
    numbers: ["4761369980320253", "5200000000001104", "4200000000000015"],
    ...challenge("successful"),
    isMandated: true,
  },
  {
    name: "out-of-band challenge success",
    numbers: ["4000000000000341", "4200000000000016"],
    ...challenge("successful"),
    challengeType: "out-of-band",
  },
  {
    name: "attempted after a challenge",
    numbers: ["4005571701111111", "4200000000000008"],
    earlier: ["3528000700000000"],
    ...challenge("attempted"),
  },
  {
    name: "frictionless attempted",
    numbers: ["4111111111111111", "5424180011113336", "4200000000000003"],
    earlier: ["5454545454545454"],
    ...frictionless("attempted"),
  },
  {
    name: "frictionless failed",
    numbers: ["4264281511112228", "5424180000000171", "4200000000000005"],
    earlier: ["4462030000000000"],
    ...frictionless("failed", "01"),
  },
  {
    name: "frictionless unavailable",
    numbers: ["5405001111111165", "4200000000000006"],
    earlier: ["36148900647913"],
    ...frictionless("unavailable", "13"),
  },
  {
    name: "frictionless rejected",
    numbers: ["5405001111111116", "4200000000000007"],
    earlier: ["6759649826438453"],
    ...frictionless("rejected", "11"),
  },
  {
    name: "challenge failed",
    numbers: ["4055011111111111", "5427660064241339", "4200000000000009"],
    earlier: ["36700102000000"],
    ...challenge("failed", "01"),
  },
  {
    name: "out-of-band challenge failed",
    numbers: ["6011361011110004", "4200000000000017"],
    ...challenge("failed", "01"),
    challengeType: "out-of-band",
  },
  {
    name: "unavailable after a challenge",
    numbers: ["6011361000008888", "4200000000000010"],
    earlier: ["6011000400000000"],
    ...challenge("unavailable", "13"),
  },
  {
    name: "rejected after a challenge",
    numbers: ["6011361000001115", "4200000000000011"],
    earlier: ["4444333322221111"],
    ...challenge("rejected", "11"),
  },
  {
    name: "directory server error",
    numbers: ["4264281500003339", "5424180011110001", "4200000000000012"],
    earlier: ["122000000000003"],
    refused: "authenticate",
  },
  {
    name: "internal error",
    numbers: ["4264281500001119", "4200000000000013"],
    earlier: ["5019717010103742"],
    refused: "create",
  },
  { name: "card without 3DS", numbers: ["4100000000000003"], refused: "create" },
  {
    name: "co-badged with Cartes Bancaires",
    numbers: ["4150580996517927"],
    ...challenge("successful"),
    brands: ["Visa", "Cartes Bancaires"],
  },
];
