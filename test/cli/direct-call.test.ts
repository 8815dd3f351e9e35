import { describe, expect, test } from 'bun:test'
import { commands } from '#src/cli/commands.ts'
import { directCall } from '#src/cli/direct-call.ts'
import { program } from '#src/cli/program.ts'

/** Returns the options and arguments that commander passes to a command of one word. */
const parsed = async (args: string[]): Promise<[options: object, operands: string[]]> => {
  const gatehouse = program(args[0])
  const command = gatehouse.commands.find(each => each.name() === args[0])
  command?.action(() => {})
  await gatehouse.parseAsync(args, { from: 'user' })
  return [{ ...gatehouse.opts(), ...command?.opts() }, command?.args ?? []]
}

describe('a call without commander', () => {
  const calls = [
    ['serve'],
    ['healthcheck'],
    ['healthcheck', '--url', 'http://localhost:1'],
    ['dev'],
    ['dev', '--port', '0', '--auto-login', '--tls', '--data-dir', 'a b', '--public-issuer'],
    ['dev', '--port', '1', '--port', '2'],
    ['exec', '--', 'sh', '-c', 'true', '--', '--port', '1'],
    ['exec', '--client', 'dev-web', '--', 'true'],
    ['token', '--user', 'alice', '--output', 'json', '--expires-in', '1h'],
    ['openapi', '--seed-schema'],
    ['check'],
    ['sbom'],
  ]
  for (const args of calls)
    test(`has the options that commander passes: ${args.join(' ')}`, async () => {
      const [options, operands] = await parsed(args)
      const row = commands.find(({ name }) => name === args[0])
      const call = directCall(args)
      expect(call?.options()).toEqual({ ...options })
      expect(operands).toEqual(row?.arguments ? args.slice(args.indexOf('--') + 1) : [])
    })

  const others = [
    [],
    ['help'],
    ['unknown'],
    ['user'],
    ['man'],
    ['serve', 'now'],
    ['serve', '--help'],
    ['serve', '--config', 'a.yaml'],
    ['dev', '--port'],
    ['dev', '--port', '--tls'],
    ['dev', '--port=0'],
    ['dev', '--dev-host', 'a', 'b'],
    ['dev', '--unknown'],
    ['dev', '--', 'true'],
    ['exec'],
    ['exec', 'true'],
    ['token', '-o', 'json'],
    ['sbom', '--format', 'spdx'],
    ['completion', 'bash'],
    ['user', 'list'],
    ['apply', 'seed.yaml'],
  ]
  for (const args of others)
    test(`is left to commander: ${args.join(' ') || 'no words'}`, () => {
      expect(directCall(args)).toBeUndefined()
    })
})
