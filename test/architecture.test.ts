import { expect, test } from 'bun:test'
import { dirname, join } from 'node:path'
import { Glob } from 'bun'
import { machinery, owners } from '#test/support/table-owners.ts'

const rooms = [
  'lib',
  'protocol',
  'resource-server',
  'config',
  'storage',
  'context',
  'observability',
  'http',
  'pages',
  'audit',
  'delivery',
  'mail',
  'tokens',
  'sessions',
  'directory',
  'sign-in',
  'webhooks',
  'oauth',
  'authorize',
  'federation',
  'links',
  'account',
  'seed',
  'operations',
  'admin',
  'console',
  'guide',
  'dev',
  'sections',
  'app',
  'testing',
  'cli',
  'main',
]
const inDirectory = [
  'access',
  'roles',
  'organizations',
  'users',
  'sessions',
  'apis',
  'clients',
  'groups',
  'identity-providers',
  'invitations',
  'registrations',
]

/** True for code of the console that runs in the browser. Other rules apply to such code. */
const isForBrowser = (file: string): boolean => file.startsWith('console/app/')
const files = [...new Glob('**/*.ts').scanSync('src')].filter(file => !isForBrowser(file)).sort()
const source = new Map(
  await Promise.all(files.map(async file => [file, await Bun.file(`src/${file}`).text()] as const)),
)

const roomOf = (file: string): string => (file.split('/')[0] ?? '').replace(/\.ts$/, '')
const folderOf = (file: string): string => file.split('/').slice(0, -1).join('/')
const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(match => match[1] ?? '')

/** Returns the imported file as a path below src. For an imported package, no file has the returned path. */
const targetOf = (file: string, imported: string): string =>
  imported.startsWith('#src/') ? imported.slice('#src/'.length) : join(dirname(file), imported)

/** Returns the forbidden imports as `file -> import`, so that a failed test names the imports to fix. */
const breaches = (offends: (file: string, imported: string) => boolean): string[] =>
  [...source].flatMap(([file, text]) =>
    importsOf(text)
      .filter(imported => offends(file, imported))
      .map(imported => `${file} -> ${imported}`),
  )

test('every file is in a known room', () => {
  expect(files.map(roomOf).filter(room => !rooms.includes(room))).toEqual([])
})

test('a test is in the folder of its room, or of a subject that spans rooms', () => {
  const subjects = ['browser', 'conformance', 'examples', 'flows', 'isolation', 'reliability']
  const folders = [...new Glob('*/**/*.test.ts').scanSync('test')].map(roomOf)
  expect([...new Set(folders)].filter(folder => ![...rooms, ...subjects].includes(folder))).toEqual([])
})

test('a file imports from its own folder and from earlier rooms only', () => {
  expect(
    breaches((file, imported) => {
      if (imported.startsWith('#src/')) {
        const target = imported.slice('#src/'.length)
        const [from, to] = [rooms.indexOf(roomOf(file)), rooms.indexOf(roomOf(target))]
        return to < 0 || to > from
      }
      return (
        imported.startsWith('../') &&
        !(roomOf(file) === 'resource-server') &&
        !/package\.json$/.test(imported) &&
        !imported.startsWith('../../templates/')
      )
    }),
  ).toEqual([])
})

test('no circular imports, imports of types included', () => {
  const edges = new Map(
    [...source].map(([file, text]) => [file, importsOf(text).map(imported => targetOf(file, imported))]),
  )
  const isInCircle = (file: string): boolean => {
    const reached = new Set(edges.get(file))
    for (const target of reached) for (const next of edges.get(target) ?? []) reached.add(next)
    return reached.has(file)
  }
  expect(files.filter(isInCircle)).toEqual([])
})

test('each name has one address: no re-exports outside the published packages', () => {
  const passingOn = /^export (?:type )?(?:\*|\{)|^export const \w+ = [a-z]\w*$(?!\n {2}\.)/m
  const found = [...source].filter(
    ([file, text]) => !/^(resource-server|testing)\//.test(file) && passingOn.test(text),
  )
  expect(found.map(([file]) => file)).toEqual([])
})

test('each export is used in another file of src, except those listed', () => {
  const words = new Map([...source].map(([file, text]) => [file, new Set(text.match(/\w+/g))]))
  const isUsedElsewhere = (file: string, name: string) =>
    [...words].some(([other, known]) => other !== file && known.has(name))
  const unused = [...source].flatMap(([file, text]) =>
    [...text.matchAll(/^export (?:async )?(?:const|function|class|let) (\w+)/gm)]
      .map(match => match[1] ?? '')
      .filter(name => !/^(resource-server|testing)\//.test(file) && !isUsedElsewhere(file, name))
      .map(name => `${file} ${name}`),
  )
  // The only users of these exports are their own file, tests and scripts of .ci.
  expect(unused).toEqual([
    'dev/fake-openid.ts fakeOpenId',
    'dev/mint-schema.ts badTokenNames',
    'directory/access.ts organizationFor',
    'operations/event-loop.ts largestOfMinute',
    'pages/accent.ts accentStyle',
    'pages/view.ts isPowerful',
    'sessions/logout-delivery.ts deliverLogouts',
    'sign-in/throttle.ts afterFailure',
    'storage/sqlite/queries.ts sqliteDialect',
    'storage/store.ts startStatements',
    'tokens/signing-thread.ts openThread',
  ])
})

test('an exported name means one thing: no two files export it', () => {
  // Several files export these names on purpose. Resources of the admin API export `writable`, `judgeNew` and
  // `judgeChange`. The adapters of the SDK export the same functions. Both entries of the testing package
  // export `startGatehouse`.
  const oneOfAKind =
    /^(?:writable|judgeNew|judgeChange|gatehouse|auth|logout|protect|getClaims|startGatehouse)$/
  // The testing package imports no other room, so it declares the server's types again.
  const files = [...source].filter(([file]) => file !== 'testing/types.ts')
  const places = new Map<string, Set<string>>()
  for (const [file, text] of files)
    for (const [, name = ''] of text.matchAll(
      /^export (?:async )?(?:const|function|class|let|interface|type) (\w+)/gm,
    ))
      places.set(name, (places.get(name) ?? new Set()).add(file))
  const shared = [...places].filter(([name, at]) => at.size > 1 && !oneOfAKind.test(name))
  expect(shared.map(([name, at]) => `${name}: ${[...at].join(', ')}`)).toEqual([])
})

test('every interface and every export of a published package has a doc comment', () => {
  const isPublished = (file: string) => /^(?:resource-server|testing)\//.test(file)
  const undocumented = [...source].flatMap(([file, text]) => {
    const kinds = isPublished(file) ? 'const|function|class|interface|type' : 'interface'
    return [...text.matchAll(new RegExp(`(?<!\\*/)\\nexport (?:async )?(?:${kinds}) (\\w+)`, 'g'))].map(
      match => `${file} ${match[1]}`,
    )
  })
  expect(undocumented).toEqual([])
})

test(`inside directory/ the order is ${inDirectory.join(', ')}`, () => {
  const place = (file: string) => inDirectory.indexOf((file.split('/')[1] ?? '').replace(/\.ts$/, ''))
  expect(
    breaches((file, imported) => {
      if (!file.startsWith('directory/') || !imported.startsWith('#src/directory/')) return false
      return place(imported.slice('#src/'.length)) > place(file)
    }),
  ).toEqual([])
})

test('across folders imports are absolute, inside a folder relative', () => {
  expect(
    breaches(
      (file, imported) =>
        imported.startsWith('#src/') &&
        folderOf(imported.slice('#src/'.length)) === folderOf(file) &&
        folderOf(file) !== '',
    ),
  ).toEqual([])
})

test('protocol/ is pure', () => {
  const impure = /\bfetch\(|Date\.now\(|\bprocess\.|Math\.random|randomBytes|randomUUID/
  const inProtocol = [...source].filter(([file]) => file.startsWith('protocol/'))
  expect(inProtocol.length).toBeGreaterThan(0)
  expect(inProtocol.filter(([, text]) => impure.test(text)).map(([file]) => file)).toEqual([])
  expect(
    breaches((file, imported) => file.startsWith('protocol/') && /^(elysia|drizzle|bun)/.test(imported)),
  ).toEqual([])
})

test('the SDK imports nothing from the server', () => {
  expect(
    breaches((file, imported) => file.startsWith('resource-server/') && imported.startsWith('#src/')),
  ).toEqual([])
})

/** Returns a text without its comments. */
const codeOf = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')

test('SQL lives in storage/ and in files called store.ts', () => {
  const allowed = (file: string) => file.startsWith('storage/') || file.endsWith('store.ts')
  expect(breaches((file, imported) => /^drizzle-orm/.test(imported) && !allowed(file))).toEqual([])
  // Code can make queries without an import, through the `tables` of a transaction. The test therefore also
  // looks for such calls.
  const query = /\.(?:select|selectDistinct|insert|\$count)\(|\btables\b(?!\.ts)/
  const asking = [...source].filter(([file, text]) => !allowed(file) && query.test(codeOf(text)))
  expect(asking.map(([file]) => file)).toEqual([])
})

/**
 * Returns the tables to which source code writes, and `*` for a write to a table that the code does not name.
 */
const writesOf = (text: string, tables: readonly string[]): string[] => {
  const code = codeOf(text)
  const nameOf = (expression: string, index: number): string => {
    const name = expression.split('.').at(-1) ?? ''
    const aliases = [...code.slice(0, index).matchAll(new RegExp(`(\\w+): ${name}\\b`, 'g'))]
    return [name, aliases.at(-1)?.[1] ?? ''].find(found => tables.includes(found)) ?? '*'
  }
  const built = [
    ...code.matchAll(/(\w+)\s*\.(insert|update|delete)\(\s*([\w.]+)[^)]*\)+\s*\.?(\w*)/g),
  ].filter(
    ([, on, verb, , next = '']) =>
      on === 'tx' || verb === 'insert' || ['set', 'where', 'returning'].includes(next),
  )
  const batches = [...code.matchAll(/()()\bdeleteBatch\(\s*\w+,\s*([\w.]+)/g)]
  const raw = [...code.matchAll(/\b(?:insert\s+into|replace\s+into|update|delete\s+from)\s+"?(\$\{|\w+)/gi)]
  return [
    ...[...built, ...batches].map(match => nameOf(match[3] ?? '', match.index)),
    ...raw.flatMap(([, name = '']) => (name === '${' ? '*' : tables.includes(name) ? name : [])),
  ]
}

test('each table is written by the one file that owns it', () => {
  const model = source.get('storage/tables.ts') ?? ''
  const tables = [...model.matchAll(/=>\s*table\(\s*'(\w+)'/g)].map(match => match[1] ?? '')
  expect(Object.keys(owners).sort()).toEqual(tables.toSorted())
  const writers = [...source].map(([file, text]) => [file, writesOf(text, tables)] as const)
  const found = writers.flatMap(([file, written]) =>
    file in machinery ? [] : [...new Set(written)].map(name => `${name}: ${file}`),
  )
  const { counters: _, ...owned } = owners
  expect(found.sort()).toEqual(
    Object.entries(owned)
      .map(([name, file]) => `${name}: ${file}`)
      .sort(),
  )
  // `machinery` lists the files whose code writes to tables without naming them.
  const general = writers.filter(([, written]) => written.includes('*')).map(([file]) => file)
  expect(general).toEqual(Object.keys(machinery))
})

test('the guide is loaded on demand', () => {
  const eager = [...source].filter(([, text]) => /^(?:import|\}) .*'#src\/guide\//m.test(text))
  expect(eager.map(([file]) => file)).toEqual(['cli/guide.ts'])
  expect(source.get('cli/commands.ts')).not.toMatch(/^import .*guide/m)
})

test('Elysia is created in one place, which leaves bodies unread', () => {
  expect(
    breaches(
      (file, imported) => !file.startsWith('resource-server/') && /^(elysia|@elysiajs)/.test(imported),
    ),
  ).toEqual(['http/router.ts -> elysia'])
})

test('only config.ts and the command line read the environment', () => {
  const readers = [...source].filter(([, text]) => /process\.env|Bun\.env/.test(text)).map(([file]) => file)
  expect(
    readers.filter(
      file => !/^(config\.ts|cli\/|resource-server\/|testing\/|directory\/clients\/snippets\.ts)/.test(file),
    ),
  ).toEqual([])
})

/**
 * Files that keep state of their own. All other state is in the parts that `openCore` and `createApp` make.
 */
const stateful = [
  // State of a request. Its key is the request object, because Elysia and its adapters pass on nothing else.
  'http/call.ts',
  'resource-server/elysia.ts',
  // State of a database connection or pool, and state of an app.
  'storage/store.ts',
  'storage/postgres/connect.ts',
  'resource-server/fastify.ts',
  // The process has one order of ids, one pool of threads and one set of file locks.
  'lib/ids.ts',
  'directory/users/hash-threads.ts',
  'tokens/signing-thread.ts',
  'storage/sqlite/lock.ts',
  // A module of the runtime that the first call loads.
  'lib/ip.ts',
  // Each thread has its own modules.
  'tokens/signing-worker.ts',
  'storage/sqlite/checkpoint-worker.ts',
  // Cached results of functions that depend only on embedded files or on a colour.
  'directory/users/common-passwords.ts',
  'pages/accent.ts',
  'pages/assets.ts',
  'pages/translate.ts',
]

test('no module or WeakMap holds state, except in the listed files', () => {
  const state =
    /new Weak(?:Map|Set|Ref)\b|^(?:export )?(?:let |const \w+(?:: [^=]+)? = (?:new (?:Map|Set)\b[^(\n]*\(\)|\[\]|\{\}|open\w+\())/m
  expect([...source].filter(([, text]) => state.test(text)).map(([file]) => file)).toEqual(stateful.sort())
})

test('the time is read from the clock of the context', () => {
  const readers = [...source]
    .filter(([, text]) => /Date\.now\(|new Date\(\)/.test(text))
    .map(([file]) => file)
  // Log lines have the real time, even after the clock of development mode was changed.
  expect(readers.filter(file => !/^(cli\/|resource-server\/|testing\/|dev\/)/.test(file))).toEqual([
    'lib/log.ts',
  ])
})

test('the signature algorithms are listed once, and once in each package that imports nothing', () => {
  expect([...source].filter(([, text]) => text.includes("'RS512'")).map(([file]) => file)).toEqual([
    'protocol/oidc/signing-algs.ts',
    'resource-server/keys.ts',
    'resource-server/testing.ts',
    'testing/types.ts',
  ])
})

test('no function is longer than 80 lines, except the schema', () => {
  const indentOf = (line: string) => line.length - line.trimStart().length
  // Biome indents the body of a function more than its first line. The function ends at the next line that is
  // not indented more than the first line.
  const lengthFrom = (lines: string[], start: number): number => {
    const indent = indentOf(lines[start] ?? '')
    const end = lines.findIndex((line, i) => i > start && line !== '' && indentOf(line) <= indent)
    return end - start + 1
  }
  const opens = /(?:=> |\bfunction\b.*|^\s*(?:async )?\w+\(.*\)(?:: .*)? )\{$/
  const long = [...source].flatMap(([file, text]) => {
    const lines = text.split('\n')
    return lines.flatMap((line, i) =>
      opens.test(line) && !/^\s*(?:if|for|while|switch) /.test(line) && lengthFrom(lines, i) > 80
        ? [`${file}:${i + 1} ${line.trim()}`]
        : [],
    )
  })
  expect(long.map(place => place.replace(/:\d+/, ''))).toEqual([
    'storage/tables.ts export const tables = (kit: Kit) => {',
  ])
})

test('H-04 only the killable worker imports the XML libraries', () => {
  const valueImports = (text: string) => importsOf(text.replace(/^(?:import|export) type .*$/gm, ''))
  const reaching = new Set(
    [...source].filter(([, text]) => /'(@xmldom\/xmldom|xml-crypto|xpath)'/.test(text)).map(([file]) => file),
  )
  expect(reaching.size).toBeGreaterThan(0)
  const WORKER = 'directory/identity-providers/xml-worker.ts'
  for (let before = 0; before < reaching.size; ) {
    before = reaching.size
    for (const [file, text] of source) {
      const targets = valueImports(text).map(imported => targetOf(file, imported))
      if (targets.some(target => target !== WORKER && reaching.has(target))) reaching.add(file)
    }
  }
  expect([...reaching].filter(file => !file.startsWith('protocol/saml/'))).toEqual([WORKER])
})

test('fast-xml-parser builds XML and never reads it', () => {
  const users = [...source].filter(([, text]) => text.includes("from 'fast-xml-parser'"))
  expect(users.map(([file]) => file)).toEqual(['protocol/saml/build-xml.ts'])
  expect(users[0]?.[1]).toContain("import { XMLBuilder } from 'fast-xml-parser'")
})
