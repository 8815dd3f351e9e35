import { afterAll, describe, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLogger } from '#src/lib/log.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, authorizeUrl } from '#test/support/people.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-themes-'))
const folder = join(data_dir, 'themes')
mkdirSync(folder)
afterAll(() => rmSync(data_dir, { recursive: true }))

const write = (path: string, content: string | Uint8Array) => writeFileSync(join(folder, path), content)
const red = (shade: string) => `:root { --accent: ${shade}; }\n`

const logged: { theme?: string; reason?: string }[] = []
const log = openLogger('warn', line => logged.push(JSON.parse(line)))
const app = await startApp({ data_dir }, { log })
await addOrganization(app, 'acme')
await addClient(app, 'shop', { organization_id: (await app.admin('GET', '/organizations/acme')).body.id })

/**
 * Sets the organization's theme, moves the clock until cached files have expired, and returns the login
 * page's stylesheets.
 */
const sheetsWith = async (theme: string | null): Promise<string[]> => {
  const { status } = await app.admin('PUT', '/organizations/acme', { settings: { theme } })
  expect(status).toBe(200)
  app.clock.advance(3_000)
  const { html } = await openBrowser(app).get(authorizeUrl('shop'))
  return [...html.matchAll(/<link rel="stylesheet" href="([^"]+)">/g)].map(([, url = '']) => url)
}
const names = (sheets: string[]) => sheets.map(url => url.replace(/^\/assets\/|\.[0-9a-f]{12}\.css$/g, ''))

describe('a theme of the data directory', () => {
  test('extends the default theme, and is served under its hash, cacheable for ever', async () => {
    write('acme-red.css', red('#aa0000'))
    const sheets = await sheetsWith('acme-red')
    expect(names(sheets)).toEqual(['themes/default', 'style', 'themes/acme-red'])
    const answer = await app.call(sheets[2] ?? '')
    expect(await answer.text()).toBe(red('#aa0000'))
    answer.headers.delete('x-request-id')
    expect(Object.fromEntries(answer.headers)).toEqual({
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    })
  })

  test('PAG-06 is read again when it changes, without a restart; a version that a page has linked stays available', async () => {
    write('moving.css', red('#100000'))
    const [first = ''] = (await sheetsWith('moving')).slice(2)
    write('moving.css', red('#200000'))
    const [second = ''] = (await sheetsWith('moving')).slice(2)
    expect(second).not.toBe(first)
    expect(await (await app.call(first)).text()).toBe(red('#100000'))
    expect(await (await app.call(second)).text()).toBe(red('#200000'))
    // The clock of the machine is set back by an hour.
    write('moving.css', red('#300000'))
    app.clock.advance(-3_600_000)
    const [third = ''] = (await sheetsWith('moving')).slice(2)
    expect(await (await app.call(third)).text()).toBe(red('#300000'))
    rmSync(join(folder, 'moving.css'))
    expect(names(await sheetsWith('moving'))).toEqual(['themes/default', 'style'])
  })

  test('named like a built-in theme extends that theme; default.css applies to every page without another', async () => {
    write('ember.css', red('#300000'))
    expect(names(await sheetsWith('ember'))).toEqual(['themes/ember', 'style', 'themes/ember'])
    write('default.css', red('#400000'))
    expect(names(await sheetsWith(null))).toEqual(['themes/default', 'style', 'themes/default'])
    expect(names(await sheetsWith('nowhere'))).toEqual(['themes/default', 'style', 'themes/default'])
    const error = await app.call('/nowhere', { headers: { accept: 'text/html' } })
    expect(await error.text()).toMatch(/themes\/default\.[0-9a-f]{12}\.css.*style.*themes\/default\./s)
    for (const file of ['ember.css', 'default.css']) rmSync(join(folder, file))
    expect(names(await sheetsWith('ember'))).toEqual(['themes/ember', 'style'])
  })

  test('missing or unusable falls back to the default, and is logged once', async () => {
    writeFileSync(join(data_dir, 'master.key'), 'secret')
    symlinkSync('../master.key', join(folder, 'stolen.css'))
    mkdirSync(`${folder}-of-others`)
    writeFileSync(join(`${folder}-of-others`, 'sheet.css'), red('#700000'))
    symlinkSync('../themes-of-others/sheet.css', join(folder, 'beside.css'))
    mkdirSync(join(folder, 'folder.css'))
    execFileSync('/usr/bin/mkfifo', [join(folder, 'pipe.css')])
    write('large.css', new Uint8Array(256 * 1024 + 1))
    logged.length = 0
    const bad = ['absent', 'stolen', 'beside', 'folder', 'pipe', 'large']
    for (const name of [...bad, ...bad])
      expect([name, names(await sheetsWith(name))]).toEqual([name, ['themes/default', 'style']])
    expect(logged.map(({ theme, reason }) => [theme, reason])).toEqual([
      ['absent', 'there is no such theme'],
      ['stolen', 'the link leads out of the folder'],
      ['beside', 'the link leads out of the folder'],
      ['folder', 'not a regular file'],
      ['pipe', 'not a regular file'],
      ['large', 'larger than 256 KiB'],
    ])
    write('large.css', new Uint8Array(256 * 1024).fill(0x20))
    expect(names(await sheetsWith('large'))).toEqual(['themes/default', 'style', 'themes/large'])
  })

  test('with an unsafe file name falls back to the default, wherever the name came from', () => {
    const { themes } = app.context
    for (const name of ['../master', '..', 'Acme', 'a/b', 'a.b', '%2e'])
      expect([name, themes.find(name).sheets]).toEqual([name, themes.find().sheets])
  })

  test('may be a symbolic link inside the folder', async () => {
    write('real.css', red('#500000'))
    symlinkSync('real.css', join(folder, 'linked.css'))
    expect(names(await sheetsWith('linked'))).toEqual(['themes/default', 'style', 'themes/linked'])
  })

  test('may have pictures and fonts beside it, and no other file is served', async () => {
    for (const path of ['acme-red', 'acme-red/deep']) mkdirSync(join(folder, path))
    write('acme-red/wave.svg', '<svg/>')
    write('acme-red/deep/wave.svg', '<svg/>')
    write('acme-red/notes.txt', 'x')
    write('acme-red/.hidden.svg', '<svg/>')
    write('acme-red/huge.png', new Uint8Array(1024 * 1024 + 1))
    symlinkSync('../../master.key', join(folder, 'acme-red/key.svg'))
    const answer = await app.call('/assets/themes/acme-red/wave.svg')
    answer.headers.delete('x-request-id')
    expect(Object.fromEntries(answer.headers)).toEqual({
      'content-type': 'image/svg+xml',
      'cache-control': 'public, max-age=300',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    })
    const refused = [
      ...['notes.txt', '.hidden.svg', 'huge.png', 'key.svg', 'deep/wave.svg', 'none.svg', '../acme-red.css'],
      ...['..%2facme-red.css', '%2e%2e/acme-red.css', '..\\acme-red.css', 'wave.svg/', 'wave.svg%00', ''],
    ].map(file => `/assets/themes/acme-red/${file}`)
    for (const path of [
      ...refused,
      '/assets/themes/acme-red.css',
      '/assets/themes/acme-red.000000000000.css',
      '/assets/themes/stolen.000000000000.css',
      '/assets/themes/../../master.key',
      '/assets/themes/..%2f..%2fmaster.key',
    ])
      expect([path, (await app.call(path)).status]).toEqual([path, 404])
    // Strangers cannot fill the log with names that they invent.
    logged.length = 0
    for (let i = 0; i < 10; i++) await app.call(`/assets/themes/invented-${i}.000000000000.css`)
    expect(logged).toEqual([])
  })

  test('is served at its URL after a restart too', async () => {
    write('kept.css', red('#600000'))
    const [sheet = ''] = (await sheetsWith('kept')).slice(2)
    const restarted = await startApp({ data_dir })
    expect(await (await restarted.call(sheet)).text()).toBe(red('#600000'))
  })
})

test('each theme with a fault is named', () => {
  write('Loud.css', '')
  expect(checkThemes(app.context.config, ['graphite', 'acme-red', 'absent']).sort()).toEqual([
    'themes/Loud.css: use lower-case letters, digits and hyphens in the name',
    'themes/beside.css: the link leads out of the folder',
    'themes/folder.css: not a regular file',
    'themes/pipe.css: not a regular file',
    'themes/stolen.css: the link leads out of the folder',
    'there is no theme named "absent"',
  ])
  expect(checkThemes({ ...app.context.config, data_dir: join(data_dir, 'nowhere') }, ['ember'])).toEqual([])
})

test('every property that the guide documents exists on the pages', async () => {
  const read = (path: string) => Bun.file(`${import.meta.dir}/../../${path}`).text()
  const named = new Set((await read('templates/guide/looks.md')).match(/--[a-z][a-z-]*/g))
  const known = new Set(
    `${await read('templates/themes/default.css')}${await read('templates/style.css')}`.match(
      /--[a-z][a-z-]*/g,
    ),
  )
  expect(named.size).toBeGreaterThan(15)
  expect([...named].filter(name => !known.has(name))).toEqual([])
})
