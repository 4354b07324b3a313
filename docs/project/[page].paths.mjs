// The files of the repository that are pages of the site, although they are not in docs/.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { projectPages, root } from "../.vitepress/sources.mjs";

export default {
  paths: () =>
    Object.entries(projectPages).map(([page, file]) => ({
      params: { page },
      content: readFileSync(join(root, file), "utf8"),
    })),
};
