/** `bun run build:testing`: packs this folder as the package @gatehouse/testing into dist/testing. */
import { $, Glob } from 'bun'
import { license, version } from '../../package.json'

const manifest = {
  name: '@gatehouse/testing',
  version,
  description:
    'A Gatehouse server for tests: in the test process under Bun, from the executable under Node and Deno.',
  license,
  type: 'module',
  sideEffects: false,
  engines: { node: '>=20' },
  exports: {
    '.': { types: './index.d.ts', bun: './index.js', default: './process.js' },
    './process': { types: './process.d.ts', default: './process.js' },
  },
}

const root = `${import.meta.dir}/../..`
const target = `${root}/dist/testing`

await $`rm -rf ${target}`
await $`${root}/node_modules/.bin/tsc -p ${import.meta.dir}/tsconfig.json`
// The compiler rewrites `./x.ts` to `./x.js` in code but not in declarations.
for await (const file of new Glob('*.d.ts').scan({ cwd: target, absolute: true })) {
  const text = await Bun.file(file).text()
  await Bun.write(file, text.replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"))
}
const built = await Bun.build({
  entrypoints: [`${import.meta.dir}/index.ts`, `${root}/src/directory/identity-providers/xml-worker.ts`],
  naming: '[name].[ext]',
  outdir: target,
  target: 'bun',
  // Without this definition the bundle contains folder names of the machine that builds it.
  define: { __dirname: '"/"' },
  // Bun shows the code around an error. Without line breaks this is the whole bundle.
  minify: { syntax: true, identifiers: true },
})
if (!built.success) throw new AggregateError(built.logs, 'the server could not be bundled')
await Bun.write(`${target}/index.d.ts`, await Bun.file(`${target}/process.d.ts`).text())
await Bun.write(`${target}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`)
await $`cp ${import.meta.dir}/README.md ${root}/LICENSE ${target}`
