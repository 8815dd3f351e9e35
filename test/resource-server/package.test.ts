import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const folder = `${import.meta.dir}/../../src/resource-server`

/** Bytes of the minified core, without jose. */
async function coreSize(): Promise<number> {
  const built = await Bun.build({ entrypoints: [`${folder}/index.ts`], minify: true, external: ['jose'] })
  return built.outputs[0]?.size ?? Number.NaN
}

test('the core stays under 15 KiB minified, without jose', async () => {
  expect(await coreSize()).toBeLessThan(15 * 1024)
})

test('each file imports jose, its neighbours and at most its own framework', async () => {
  const frameworks = ['elysia', 'hono', 'express', 'fastify']
  for await (const file of new Glob('*.ts').scan(folder)) {
    if (file === 'build.ts') continue
    const source = await Bun.file(`${folder}/${file}`).text()
    const own = frameworks.filter(name => file === `${name}.ts`)
    for (const [, name = ''] of source.matchAll(/(?:from|import) '([^']+)'/g)) {
      expect(name.startsWith('./') || ['jose', ...own].includes(name) ? '' : `${file}: ${name}`).toBe('')
    }
    expect(/\b(Bun|Deno|Buffer|require)\b\./.test(source) ? file : '').toBe('')
  }
})
