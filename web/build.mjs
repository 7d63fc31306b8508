// Bundles src/ with the chart library into HTML files, the report page and the page of `stepcast serve`: build.mjs NODE_MODULES FOLDER. Run by CMake (web/CMakeLists.txt); tests: tests/*.test.mjs.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const source = join(dirname(fileURLToPath(import.meta.url)), "src");
const esbuild = createRequire(join(modules, "_"))("esbuild");

async function bundled(entry, format) {
  const result = await esbuild.build({
    entryPoints: [join(source, entry)],
    nodePaths: [modules],
    bundle: true,
    minify: true,
    write: false,
    format,
    target: ["es2020", "chrome90", "firefox90", "safari15"],
    legalComments: "none",
    charset: "utf8",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
}

/// A page: its script, its style, and what it may ask for beside them.
async function write(name, { entry, sheet, connect, noscript }) {
  const script = await bundled(entry, "iife");
  const style = await bundled(sheet);
  if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle would end its own element");
  const hash = createHash("sha256").update(script).digest("base64");
  // Functions as replacements: a bundle holds "$&" and the like.
  const page = readFileSync(join(source, "template.html"), "utf8")
    .replace("%SCRIPT_HASH%", () => `sha256-${hash}`)
    .replace("%CONNECT%", connect)
    .replace("%NOSCRIPT%", noscript)
    .replace("%STYLE%", () => style)
    .replace("%SCRIPT%", () => script);
  writeFileSync(join(out, name), page);
}

await write("report.html", { entry: "main.js", sheet: "page.css", connect: "", noscript: "The same figures are in report.json and report.txt beside it." });
await write("serve.html", { entry: "serve.js", sheet: "serve.css", connect: "connect-src 'self'; ", noscript: "The same figures: stepcast run." });
