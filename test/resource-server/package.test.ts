import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { createVerifier } from '#src/resource-server/index.ts'

const folder = `${import.meta.dir}/../../src/resource-server`

/** Returns the size of a minified entry point in bytes, without jose. */
async function sizeOf(file: string): Promise<number> {
  const built = await Bun.build({ entrypoints: [`${folder}/${file}`], minify: true, external: ['jose'] })
  return built.outputs[0]?.size ?? Number.NaN
}

test.each(['index.ts', 'logout.ts', 'mcp.ts'])('%s stays under 15 KiB minified, without jose', async file => {
  expect(await sizeOf(file)).toBeLessThan(15 * 1024)
})

test('each file imports only jose, its neighbours and one framework at most', async () => {
  const frameworks = ['elysia', 'hono', 'express', 'fastify']
  for await (const file of new Glob('*.ts').scan(folder)) {
    if (file === 'build.ts') continue
    const source = await Bun.file(`${folder}/${file}`).text()
    const own = frameworks.filter(name => file === `${name}.ts`)
    // This module of Node reports new Fastify instances to the adapter. The import excludes no runtime,
    // because Fastify itself needs modules of Node.
    if (file === 'fastify.ts') own.push('node:diagnostics_channel')
    for (const [, name = ''] of source.matchAll(/(?:from|import) '([^']+)'/g)) {
      expect(name.startsWith('./') || ['jose', ...own].includes(name) ? '' : `${file}: ${name}`).toBe('')
    }
    expect(/\b(Bun|Deno|Buffer|require)\b\./.test(source) ? file : '').toBe('')
  }
})

test('over a real socket: no redirect is followed, and an endless answer is cut off', async () => {
  const paths: string[] = []
  const endless = () =>
    new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(65_536).fill(0x20)) })
  await using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      paths.push(pathname)
      return pathname === '/endless' ? new Response(endless()) : Response.redirect('/elsewhere', 302)
    },
  })
  const issuer = `http://127.0.0.1:${server.port}`
  const verifierFor = (jwksUri: string) => createVerifier({ issuer, audience: 'a', jwksUri })
  await expect(verifierFor(`${issuer}/redirect`).warmup()).rejects.toThrow(/answered 302/)
  await expect(verifierFor(`${issuer}/endless`).warmup()).rejects.toThrow(/at most 1 MiB/)
  expect(paths.toSorted()).toEqual(['/endless', '/redirect'])
})
