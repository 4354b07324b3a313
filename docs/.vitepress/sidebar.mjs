// The sidebar: groups and their order. Pages that are not listed follow at the end of the group of their folder.

import { markdownFiles, titleOf } from "./sources.mjs";
import { tags } from "./reference.mjs";

const page = (text, path) => ({ text, link: `/${path}` });

const groups = [
  {
    text: "Get started",
    items: [page("What Cloakroom is", ""), page("From a package to a token", "get-started"), page("Demo shop", "project/shop")],
  },
  {
    text: "Guides",
    folders: ["guides"],
    items: [
      page("All guides", "guides/"),
      page("Use the API", "api/guide"),
      page("Collect cards with web elements", "guides/elements"),
      page("Collect cards with a hosted page", "guides/hosted-pages"),
      page("Charge first, store later", "guides/token-intents"),
      page("Send card data to a processor", "guides/proxy"),
      page("Pre-configured proxies", "guides/proxies"),
      page("Charge with Adyen", "guides/charge-with-adyen"),
      page("Charge with Braintree", "guides/charge-with-braintree"),
      page("Charge with Checkout.com", "guides/charge-with-checkout"),
      page("Charge with Stripe", "guides/charge-with-stripe"),
      page("Charge a stored card again", "guides/recurring-payments"),
      page("Authenticate with 3-D Secure", "guides/threeds"),
      page("3-D Secure in a browser", "api/threeds-browser"),
      page("Search and deduplicate", "guides/search-and-deduplicate"),
      page("Receive events with webhooks", "guides/webhooks"),
      page("Replace client encryption keys", "guides/client-encryption-keys"),
      page("Migrate from a hosted vault", "guides/migrate"),
      page("Test cards", "guides/test-cards"),
      page("Terraform, mobile and other clients", "guides/other-clients"),
    ],
  },
  {
    text: "Concepts",
    folders: ["concepts"],
    items: [
      page("Overview", "concepts/"),
      page("Tokens", "concepts/tokens"),
      page("Containers", "concepts/containers"),
      page("Access rules and transforms", "concepts/access-rules"),
      page("Sessions", "concepts/sessions"),
      page("Expressions", "concepts/expressions"),
      page("Fingerprints", "concepts/fingerprints"),
    ],
  },
  {
    text: "Reference",
    folders: ["api"],
    items: [
      { text: "API", collapsed: true, link: "/api/", items: tags().map(({ name, slug }) => page(name, `api/reference/${slug}`)) },
      page("Errors", "api/errors"),
      page("Limits", "api/limits"),
      page("Permissions and routes", "api/permissions"),
      page("3-D Secure sessions", "api/threeds"),
      page("Web elements", "api/elements"),
      page("Events", "api/events"),
      page("Expression language", "api/expressions"),
      page("Command line", "operate/cli"),
      page("Settings", "operate/configuration"),
      page("Metrics", "operate/metrics"),
      page("Differences from the hosted service", "api/differences"),
      page("Deprecations", "api/deprecations"),
      page("Methods of the official clients", "api/sdk-methods"),
      page("Coverage of the interface", "api/coverage"),
    ],
  },
  {
    text: "Operate",
    folders: ["operate"],
    items: [
      page("Install", "operate/install"),
      page("Install on Debian", "operate/install/debian"),
      page("Use a managed PostgreSQL", "operate/install/managed-postgresql"),
      page("Install in a container", "operate/install/container"),
      page("Install on Kubernetes", "operate/install/kubernetes"),
      page("Test vault with compose", "operate/install/compose"),
      page("Development vault in a container", "operate/install/dev-container"),
      page("High availability", "operate/ha"),
      page("Plan capacity", "operate/scale"),
      page("Capacity calculator", "operate/capacity"),
      page("Performance", "operate/performance"),
      page("Back up and restore", "operate/backup"),
      page("Manage keys", "operate/keys"),
      page("Verify the audit log", "operate/audit"),
      page("Rate limits and concurrency", "operate/limits"),
      { text: "Runbooks", collapsed: true, link: "/operate/runbooks/", folders: ["operate/runbooks"], items: [page("Respond to an incident", "operate/runbooks/")] },
    ],
  },
  {
    text: "Trust",
    folders: ["trust"],
    items: [
      page("Overview", "trust/"),
      page("Threat model and known limits", "project/security"),
      page("Guarantees", "trust/guarantees"),
      page("Invariants and their tests", "trust/invariants"),
      page("Cryptography", "trust/cryptography"),
      page("Data flows and scope", "trust/data-flow"),
      page("PCI DSS responsibility matrix", "trust/pci-matrix"),
      page("Keys and PCI DSS", "trust/pci-keys"),
      page("SAQ impact", "trust/saq"),
      page("PCI 3DS", "trust/pci-3ds"),
      page("Attacker in the database", "trust/adversary"),
      page("Hostile page", "trust/hostile-page"),
      page("Findings of reviews", "trust/findings"),
      page("GDPR: erasure and residency", "trust/gdpr"),
      page("Disclosure policy", "trust/disclosure"),
    ],
  },
  {
    text: "Contribute",
    items: [
      page("Architecture", "project/architecture"),
      page("Contributing", "project/contributing"),
      page("Where the answers are", "walks"),
      page("Changelog", "project/changelog"),
      page("README", "project/readme"),
      { text: "Decisions", collapsed: true, folders: ["decisions"], items: [] },
    ],
  },
];

/** Every link of the groups, without the leading slash. */
function linksOf(items) {
  return items.flatMap(({ link, items: inner }) => [...(link ? [link.slice(1)] : []), ...linksOf(inner ?? [])]);
}

/** Adds the pages of the group's folders that no group lists. */
function complete(group, listed) {
  const ofInner = group.items.flatMap(({ folders }) => folders ?? []);
  const missing = (group.folders ?? [])
    .flatMap((folder) => markdownFiles(folder))
    .filter((file) => !ofInner.some((folder) => file.startsWith(`${folder}/`)))
    .map((file) => [file, file.replace(/\.md$/, "").replace(/(^|\/)index$/, "$1")])
    .filter(([, path]) => !listed.has(path))
    .map(([file, path]) => page(titleOf(file), path));
  const items = group.items.map((item) => (item.items ? complete(item, listed) : item));
  return { text: group.text, collapsed: true, link: group.link, items: [...items, ...missing] };
}

export function sidebar() {
  const listed = new Set(linksOf(groups));
  return groups.map((group) => complete(group, listed));
}

/** The sections in the bar at the top. */
export const sections = [
  page("Get started", "get-started"),
  page("Guides", "guides/"),
  page("Concepts", "concepts/"),
  page("Reference", "api/"),
  page("Operate", "operate/install"),
  page("Trust", "trust/"),
  page("Contribute", "project/contributing"),
];
