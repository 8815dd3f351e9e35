/** Tests the accessibility of pages and fields: headings, links, the focus, and the rules of a password. */
import { expect, test } from 'bun:test'
import { render } from '#src/pages/render.ts'
import { type Sample, samples } from '#test/support/page-samples.ts'

const nameOf = ({ page, state }: Sample) => `${page}.${state}`
const find = (name: string): Sample => {
  const found = samples.find(sample => nameOf(sample) === name)
  if (!found) throw new Error(`no sample ${name}`)
  return found
}

const show = (name: string) => {
  const { page, data } = find(name)
  return render(page, data).text()
}

const inputsOf = async ({ page, data }: Sample): Promise<Record<string, string>[]> => {
  const inputs: Record<string, string>[] = []
  const rewriter = new HTMLRewriter().on('input', {
    element: ({ attributes }) => {
      inputs.push(Object.fromEntries(attributes))
    },
  })
  await rewriter.transform(render(page, data)).text()
  return inputs
}

test('PAG-22 a refused form puts the focus on its first wrong field', async () => {
  const focused: Record<string, [string | undefined, string | undefined]> = {}
  for (const sample of samples) {
    const inputs = await inputsOf(sample)
    const [wrong] = inputs.filter(input => input['aria-invalid'] === 'true')
    if (wrong) focused[nameOf(sample)] = [wrong.name, inputs.find(input => 'autofocus' in input)?.name]
  }
  // The login page keeps the user name, and asks for the password again.
  for (const name of ['login.refused', 'login.wrong-organization']) {
    expect(focused[name]).toEqual(['username', 'password'])
    delete focused[name]
  }
  expect(Object.keys(focused).length).toBeGreaterThan(6)
  expect(Object.values(focused).filter(([wrong, focus]) => wrong !== focus)).toEqual([])
})

test('PAG-22 a form that must wait marks no field as wrong, and describes its field by the notice', async () => {
  const signUp = find('sign-up.usual')
  const waiting = { ...signUp.data, error: { code: 'throttled', seconds: 600 } }
  const shown = [
    await inputsOf(find('reset-password.refused')),
    await inputsOf(find('email-code.throttled')),
    await inputsOf({ ...signUp, data: waiting } as typeof signUp),
  ]
  for (const inputs of shown) {
    expect(inputs.filter(input => 'aria-invalid' in input)).toEqual([])
    expect(inputs.filter(input => input['aria-describedby'] === 'notice')).toHaveLength(1)
  }
})

test('PAG-22 the notice of a change has the focus, so that a screen reader says it', async () => {
  const html = await show('account-profile.usual')
  expect(html.match(/<[^>]* autofocus[ >]/g)).toEqual([
    '<div class="alert good" id="notice" role="status" tabindex="-1" autofocus>',
  ])
})

test('PAG-21 a password generator gets the rules', async () => {
  const [password] = (await inputsOf(find('set-up.empty'))).filter(({ name }) => name === 'password')
  expect(password?.passwordrules).toBe(
    'minlength: 12; required: upper; required: lower; required: digit; required: special;',
  )
})

test('PAG-32 many providers stand in two columns by name', async () => {
  const many = await show('login.providers')
  expect(many).toMatch(/<div class="providers many" role="group" aria-labelledby="providers">/)
  expect(many).toMatch(
    /<span id="providers">Continue with<[\s\S]*aria-label="Continue with GitHub">[\s\S]*<span>GitHub</,
  )
  const few = await show('login.two-providers')
  expect(few).toMatch(/<div class="providers">[\s\S]*<span>Continue with Google</)
})

test('PAG-32 among many providers Apple has its own words and the last row', async () => {
  const { page, data } = find('login.providers')
  const { providers } = data as { providers: { kind: string }[] }
  const appleFirst = providers.toSorted((a, b) => Number(b.kind === 'apple') - Number(a.kind === 'apple'))
  const html = await render(page, { ...data, providers: appleFirst } as never).text()
  const [, last = ''] =
    /<div class="providers many"[^>]*>[\s\S]*(<a [\s\S]*?<\/a>)\s*<\/div>/.exec(html) ?? []
  expect(last).toMatch(/^<a class="button secondary whole" href="\/oauth\/social\/apple">/)
  expect(last).toContain('<span>Continue with Apple</span>')
})

test('PAG-33 the heading says what was done', async () => {
  const headed = async (name: string) => {
    const html = await show(name)
    const [, heading] = /<h1>(.*?)<\/h1>/.exec(html) ?? []
    expect(html).toContain(`<title>${heading} · `)
    return heading
  }
  expect(await headed('verify-email.usual')).toBe('Confirm your email address')
  expect(await headed('verify-email.done')).toBe('Email address confirmed')
  expect(await headed('reset-password.sent')).toBe('Check your email')
})

test('PAG-35 each scope is listed once, and a scope without a text by its name', async () => {
  const textsOf = (html: string) =>
    [...html.matchAll(/<(?:li|span class="scope-title")>(.*?)<\/(?:li|span)>/g)].map(([, text]) => text)
  const [openid, away] = [
    'Confirm who you are, and see your name, username and email address',
    'Stay connected while you are away',
  ]
  expect(textsOf(await show('consent.usual'))).toEqual([openid, away])
  expect(textsOf(await show('account-applications.usual'))).toEqual([
    ...[openid, away],
    ...[openid, 'View users', '<code>fleet.dispatch</code>'],
  ])
  expect(await show('consent.powerful')).toContain('<code>https://fleet.example/telemetry</code>')
})
