/** `bun run build:sdk`: builds the package @gatehouse/resource-server in dist/sdk. */
import { $, Glob } from 'bun'
import { dependencies, license, version } from '../../package.json'

/** Entry points of the package. `tsconfig.json` in this folder lists the same entry points. */
const ENTRIES = ['index', 'elysia', 'hono', 'express', 'fastify', 'client', 'logout', 'mcp', 'testing']
/** Optional peer dependencies, because a service needs only the framework that it uses. */
const FRAMEWORKS = { elysia: '^1.4.0', hono: '^4.0.0', express: '^4.18.0 || ^5.0.0', fastify: '^5.0.0' }

const manifest = {
  name: '@gatehouse/resource-server',
  version,
  description:
    'Verifies the access and logout tokens of a Gatehouse server, for Elysia, Hono, Express, Fastify and plain fetch.',
  license,
  type: 'module',
  sideEffects: false,
  engines: { node: '>=20' },
  exports: Object.fromEntries(
    ENTRIES.map(name => [
      name === 'index' ? '.' : `./${name}`,
      { types: `./${name}.d.ts`, default: `./${name}.js` },
    ]),
  ),
  dependencies: { jose: `^${dependencies.jose}` },
  peerDependencies: FRAMEWORKS,
  peerDependenciesMeta: Object.fromEntries(Object.keys(FRAMEWORKS).map(name => [name, { optional: true }])),
}

const root = `${import.meta.dir}/../..`
const target = `${root}/dist/sdk`

await $`rm -rf ${target}`
await $`${root}/node_modules/.bin/tsc -p ${import.meta.dir}/tsconfig.json`
// tsc rewrites the import `./x.ts` to `./x.js` in code, but not in declarations. This loop rewrites the
// declarations.
for await (const file of new Glob('*.d.ts').scan({ cwd: target, absolute: true })) {
  const text = await Bun.file(file).text()
  await Bun.write(file, text.replace(/((?:from |import\()['"]\.\/[\w-]+)\.ts(['"])/g, '$1.js$2'))
}
await Bun.write(`${target}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`)
await $`cp ${import.meta.dir}/README.md ${root}/LICENSE ${target}`
