import { describe, expect, test } from 'bun:test'
import { insertAccount } from '#src/directory/identity-providers/account-store.ts'
import { type IdentityProviderId, newId } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { insertRemembered } from '#src/sessions/remembered-store.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addOrganization, addUser, authorizeUrl, REDIRECT, signIn, VERIFIER } from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, atUpstream, goThrough, pathOf } from './upstream.ts'

const {
  app,
  upstream,
  client_secret,
  asking,
  trusted,
  fresh,
  somebody,
  entry,
  accounts,
  accountsOf,
  whoIs,
  refusal,
} = await startLinking()

describe('the account page', () => {
  const own = async (username: string): Promise<{ browser: Browser; page: Page }> => {
    const browser = fresh()
    return { browser, page: await signIn(browser, await browser.get('/account'), username) }
  }

  test('links an account after authentication at the provider, and unlinks it again', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const { browser, page } = await own(sub)
    await app.events()
    const leave = await browser.follow(
      await browser.post('/account/identities/link', {
        csrf_token: page.forms[0]?.fields.csrf_token ?? '',
        provider: 'asking',
      }),
    )
    const back = pathOf(
      await atUpstream(upstream, leave.location ?? '', {
        sub: `at-${sub}`,
        email: 'elsewhere@other.example',
      }),
    )
    const linked = await browser.follow(await browser.get(back))
    expect(linked.html).toContain('Account connected')
    expect(linked.html).toContain('elsewhere@other.example')
    expect(await refusal()).toEqual([
      ['user.updated', user.id, { fields: ['external_accounts'], linked: asking.id }],
    ])
    expect(
      await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub: `at-${sub}`, email: '' })),
    ).toBe(user.id)
    await app.events()
    const gone = await browser.follow(await browser.submit(linked, {}, '/account/identities/unlink'))
    expect(gone.html).toContain('Account disconnected')
    expect(await refusal()).toEqual([
      ['user.updated', user.id, { fields: ['external_accounts'], unlinked: asking.id }],
    ])
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('RMB-04 to link an account forgets the remembered browsers of its user only', async () => {
    const [{ sub }, other] = [somebody(), somebody()]
    const users = [await addUser(app, sub), await addUser(app, other.sub)]
    const now = app.clock.now()
    for (const { id, organization_id } of users) {
      const dates = { created_at: now, expires_at: now + 1 }
      const browser = { id: newId('brw', now), user_id: id, organization_id, browser_hash: hashSecret(id) }
      const row = { ...browser, ...dates, ip_address: '198.51.100.7', user_agent: '' }
      await app.context.store.write(tx => insertRemembered(tx, row))
    }
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const leave = await browser.post('/account/identities/link', { csrf_token, provider: 'asking' })
    const identity = { sub: `at-${sub}`, email: 'elsewhere@other.example' }
    const back = pathOf(await atUpstream(upstream, (await browser.follow(leave)).location ?? '', identity))
    expect((await browser.follow(await browser.get(back))).html).toContain('Account connected')
    const rows = await app.context.store.read(async q => q.select().from(q.tables.remembered_browsers))
    expect(rows.map(({ user_id }) => user_id)).toEqual([users[1]?.id])
  })

  test('FED-22 to unlink an account ends every other login and its sessions', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    await app.context.store.write(tx =>
      insertAccount(tx, {
        ...{ provider_id: asking.id, subject: `at-${sub}`, label: '' },
        ...{ user_id: user.id, organization_id: user.organization_id, created_at: app.clock.now() },
      }),
    )
    const thief = fresh()
    const { code = '' } = answerOf(
      await goThrough(thief, upstream, entry('asking'), { sub: `at-${sub}`, email: '' }),
    )
    const tokens = async (fields: Record<string, string>) => {
      const headers = { authorization: `Basic ${btoa(`app:${client_secret}`)}` }
      const body = new URLSearchParams(fields)
      const answer = await app.call('/oauth/token', { method: 'POST', headers, body })
      return { status: answer.status, ...((await answer.json()) as { refresh_token: string }) }
    }
    const redirect = { redirect_uri: REDIRECT, code_verifier: VERIFIER }
    const stolen = await tokens({ grant_type: 'authorization_code', code, ...redirect })
    expect(stolen.status).toBe(200)
    const { browser, page } = await own(sub)
    await app.events()
    const gone = await browser.follow(await browser.submit(page, {}, '/account/identities/unlink'))
    expect(gone.html).toContain('You have been signed out everywhere else')
    expect(gone.heading).toBe('Your account')
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.reason])).toEqual([
      ['user.updated', undefined],
      ['session.revoked', 'account_unlinked'],
    ])
    expect((await thief.get('/account')).heading).toBe('Sign in')
    const { refresh_token } = stolen
    expect((await tokens({ grant_type: 'refresh_token', refresh_token })).status).toBe(400)
  })

  test('FED-23 keeps the latest 20 accounts of a user at one provider', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const now = app.clock.now()
    const link = (provider_id: IdentityProviderId, i: number) =>
      app.context.store.write(tx =>
        insertAccount(tx, {
          ...{ provider_id, subject: `${sub}-${i}`, label: '' },
          ...{ user_id: user.id, organization_id: user.organization_id, created_at: now - 30 + i },
        }),
      )
    for (let i = 0; i < 20; i++) await link(asking.id, i)
    await link(trusted.id, 0)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const away = await browser.follow(
      await browser.post('/account/identities/link', { csrf_token, provider: 'asking' }),
    )
    await app.events()
    await browser.get(pathOf(await atUpstream(upstream, away.location ?? '', { sub: `${sub}-20` })))
    expect(await refusal()).toEqual([
      ['user.updated', user.id, { fields: ['external_accounts'], linked: asking.id }],
      ['user.updated', user.id, { fields: ['external_accounts'], unlinked: asking.id }],
    ])
    const kept = await accountsOf(user.id)
    const subjects = kept.filter(({ provider_id }) => provider_id === asking.id).map(each => each.subject)
    expect(subjects.toSorted()).toEqual(Array.from({ length: 20 }, (_, i) => `${sub}-${i + 1}`).toSorted())
    expect(kept).toHaveLength(21)
  })

  test('R-24 a restart between any two steps of a link changes nothing, and it is made once', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const browser = openBrowser(restarting(app), { ip: '198.51.100.250' })
    const page = await signIn(browser, await browser.get('/account'), sub)
    await app.events()
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const leave = await browser.follow(
      await browser.post('/account/identities/link', { csrf_token, provider: 'asking' }),
    )
    const back = pathOf(await atUpstream(upstream, leave.location ?? '', { sub: `at-${sub}` }))
    expect((await browser.follow(await browser.get(back))).html).toContain('Account connected')
    expect((await browser.get(back)).status).toBe(400)
    expect(await accountsOf(user.id)).toHaveLength(1)
    expect((await refusal()).map(([type]) => type)).toEqual(['user.updated', 'user.login_failed'])
  })

  test('one form links one account, even at two providers', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const start = await browser.post('/account/identities/link', { csrf_token, provider: 'asking' })
    const backs: string[] = []
    for (const alias of ['asking', 'trusted']) {
      const away = await browser.get((start.location ?? '').replace('/asking?', `/${alias}?`))
      backs.push(pathOf(await atUpstream(upstream, away.location ?? '', { sub: `at-${sub}` })))
    }
    const pages = [await browser.get(backs[0] ?? ''), await browser.get(backs[1] ?? '')]
    expect(pages.map(({ status }) => status)).toEqual([303, 400])
    expect(await accountsOf(user.id)).toMatchObject([{ provider_id: asking.id }])
  })

  test('PAG-62 does not remove the last way to sign in, not even after fresh authentication', async () => {
    const browser = fresh()
    const who = somebody()
    const page = await goThrough(browser, upstream, '/oauth/social/asking', who)
    expect(page.html).toContain('Your only way to sign in')
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const [account] = (await accounts()).slice(-1)
    const forced = await browser.post('/account/identities/unlink', {
      csrf_token,
      provider: 'asking',
      subject: account?.subject ?? '',
    })
    const confirm = await browser.follow(forced)
    expect(confirm.heading).toBe('Confirm it’s you')
    const [way = ''] = /\/oauth\/social\/asking\?request=[\w-]+/.exec(confirm.html) ?? []
    await refusal()
    const known = somebody()
    await goThrough(fresh(), upstream, entry('asking'), known)
    for (const other of [somebody(), known]) {
      const stranger = await goThrough(browser, upstream, way, other)
      expect([stranger.status, (await refusal()).at(-1)?.[2]]).toEqual([400, 'other_account'])
    }
    const end = await goThrough(browser, upstream, way, who)
    expect([end.status, end.heading]).toEqual([400, 'This request can’t be read'])
    expect(await accounts()).toContainEqual(account as never)
  })

  test('links no account of another user, and none after the user has left the browser', async () => {
    const who = somebody()
    await goThrough(fresh(), upstream, entry('asking'), who)
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const leave = async () => {
      const away = await browser.follow(
        await browser.post('/account/identities/link', { csrf_token, provider: 'asking' }),
      )
      return away.location ?? ''
    }
    await app.events()
    const taken = await browser.get(pathOf(await atUpstream(upstream, await leave(), who)))
    expect([taken.status, taken.heading]).toEqual([400, 'Signing in didn’t work'])
    expect((await refusal())[0]?.[2]).toBe('linked_elsewhere')
    const back = pathOf(await atUpstream(upstream, await leave(), somebody()))
    await browser.submit(page, {}, '/account/logout')
    await app.events()
    expect((await browser.get(back)).status).toBe(400)
    expect((await refusal())[0]?.[2]).toBe('not_logged_in')
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('O-28 links only by this user’s own form and redirect', async () => {
    const { sub } = somebody()
    await addUser(app, sub)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    expect(
      (await browser.post('/account/identities/link', { csrf_token: 'x.y', provider: 'asking' })).status,
    ).toBe(403)
    const other = await addOrganization(app, 'other-tenant')
    await addProvider(app, 'foreign', { organization_id: other.id })
    await addProvider(app, 'disabled', { enabled: false })
    for (const provider of ['nobody', 'foreign', 'disabled'])
      expect([
        provider,
        (await browser.post('/account/identities/link', { csrf_token, provider })).status,
      ]).toEqual([provider, 404])
    const away = await browser.post('/account/identities/link', { csrf_token, provider: 'asking' })
    const link = new URL(away.location ?? '', 'http://localhost')
    const token = link.searchParams.get('link') ?? ''
    link.searchParams.set('link', token.replace(/usr_[^.]+/, 'usr_other'))
    expect((await browser.get(link.pathname + link.search)).status).toBe(403)
    const login = await browser.get(authorizeUrl('app', { prompt: 'login' }))
    const { request } = login.forms[0]?.fields ?? {}
    expect((await browser.get(`/oauth/social/asking?request=${request}&link=${token}`)).status).toBe(403)
    expect((await fresh().get(away.location ?? '')).status).toBe(400)
  })
})
