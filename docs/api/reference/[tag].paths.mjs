// The pages of the API reference: one per tag of openapi.json.

import { pageOfTag, tags } from "../../.vitepress/reference.mjs";

export default {
  paths: () => tags().map((tag) => ({ params: { tag: tag.slug }, content: pageOfTag(tag) })),
};
