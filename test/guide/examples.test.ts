/** Checks the commands and examples of the guide. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '#src/cli/run.ts'
import { guideSections } from '#src/guide/pages.ts'
import { SECRET, serveExecutable } from '#test/support/executable.ts'

const scripts = guideSections
  .flatMap(({ pages }) => pages)
  .flatMap(({ subject, blocks }) =>
    blocks.flatMap(block =>
      block.type === 'code' && block.language === 'sh' ? [{ subject, text: block.text }] : [],
    ),
  )

test('every script is one', async () => {
  expect(scripts.length).toBeGreaterThan(15)
  for (const { subject, text } of scripts) {
    const { exitCode, stderr } = await Bun.$`sh -n -c ${text}`.nothrow().quiet()
    expect([subject, exitCode, stderr.toString()]).toEqual([subject, 0, ''])
  }
})

test('every command in a script is one, and has the options that it is given', () => {
  const lines = scripts.flatMap(({ text }) =>
    text
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map(line => line.replace(/\s+#.*| -- .*/g, ''))
      .filter(line => line.startsWith('gatehouse ')),
  )
  expect(lines.length).toBeGreaterThan(20)
  for (const line of lines) {
    let command = program()
    for (const word of line.split(' ').slice(1)) {
      const next = command.commands.find(each => each.name() === word)
      if (!next) break
      command = next
    }
    const known = command.options.map(({ long }) => long)
    expect([line, command.commands.length]).toEqual([line, 0])
    for (const [option] of line.matchAll(/--[a-z-]+/g))
      expect([line, known]).toEqual([line, expect.arrayContaining([option])])
  }
})

test('the ten lines of the admin API work as they stand', async () => {
  await using server = await serveExecutable()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  mkdirSync(join(folder, 'data'))
  writeFileSync(
    join(folder, 'data/admin-client.json'),
    JSON.stringify({ client_id: 'gatehouse-admin', client_secret: SECRET }, null, 2),
  )
  const [script = ''] = scripts.flatMap(({ subject, text }) => (subject === 'api' ? [text] : []))
  const asked = script.replace('http://localhost:8080', server.url)
  const answers = (await Bun.$`sh -c ${asked}`.cwd(folder).text()).trim().split('\n')
  const [organization, role, user, client, users, events] = answers.map(line => JSON.parse(line))
  expect(organization).toMatchObject({ slug: 'acme', settings: { session_ttl: '12h' } })
  expect(role).toMatchObject({ name: 'editor', permissions: ['users:read'] })
  expect(user).toMatchObject({ username: 'alice', roles: ['editor', 'user'] })
  expect(client).toMatchObject({ client_id: 'shop', type: 'public' })
  expect(users.data.map(({ username }: { username: string }) => username)).toEqual(['alice'])
  expect(events.data).toHaveLength(1)
  rmSync(folder, { recursive: true })
})
