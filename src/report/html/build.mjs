// page.js with ECharts, and page.css -> one C++ file of text. node build.mjs FOLDER_WITH_NODE_MODULES OUTPUT.cpp
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const [modules, output] = process.argv.slice(2);
const here = path.dirname(fileURLToPath(import.meta.url));
const { buildSync } = createRequire(path.join(modules, 'package.json'))('esbuild');

const folder = (name) => path.join(modules, 'node_modules', name);
const read = (name, file) => readFileSync(path.join(folder(name), file), 'utf8');
const about = (name) => JSON.parse(read(name, 'package.json'));
// What the licences of the bundled packages ask to be kept.
const notices = ['echarts', 'zrender', 'tslib'].map((name) => `${name} ${about(name).version}, ${about(name).license}`);
const banner = `/*!\n${notices.join('\n')}\n\n${read('echarts', 'NOTICE').trim()}\n\n${read('zrender', 'LICENSE').trim()}\n*/`;

const built = buildSync({
  entryPoints: [path.join(here, 'page.js')],
  nodePaths: [path.join(modules, 'node_modules')],
  bundle: true,
  minify: true,
  charset: 'ascii',
  format: 'iife',
  target: 'es2020',
  banner: { js: banner },
  legalComments: 'none',
  write: false,
});
const script = built.outputFiles[0].text;
const style = readFileSync(path.join(here, 'page.css'), 'utf8');

// Raw strings: C++ compilers promise to take 65536 characters.
const pieces = (text) => text.match(/[\s\S]{1,16000}/g).map((piece) => `R"collcast(${piece})collcast"sv`);
const array = (name, text) => `static constexpr std::array<std::string_view, ${pieces(text).length}> ${name}{
${pieces(text).join(',\n')}};`;
const hash = createHash('sha256').update(script).digest('base64');
writeFileSync(output, `// Written by src/report/html/build.mjs.
#include "report/page_asset.hpp"

#include <array>

namespace collcast {

using namespace std::string_view_literals;

PageAsset page_asset() {
  ${array('script', script)}
  ${array('style', style)}
  return {"", script, "sha256-${hash}", style, "${notices[0].split(',')[0]}"};
}

}  // namespace collcast
`);
