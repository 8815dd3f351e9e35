import { useEffect, useState } from 'preact/hooks'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { withQuery } from '../api.ts'
import { ApiForm } from '../api-form.tsx'
import { curlOf } from '../curl.ts'
import { Choice, Field } from '../fields.tsx'
import { useList, useObject } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { may } from '../me.ts'
import { withMore } from '../options.ts'
import { AsCurl, Card, Code, Refused } from '../parts.tsx'
import { PersonField } from '../person-field.tsx'
import { person } from '../session.ts'
import { say, words } from '../words.ts'
import type { Api } from './api.tsx'

type Client = (typeof ClientAnswer)['_output']
type Claims = Record<string, unknown>
interface Token {
  alg: string
  typ: string
  claims: Claims
}
interface Tested {
  refusal: { error: string; error_description: string } | null
  scope: string | null
  id_token: Token | null
  access_token: Token | null
  userinfo: Claims | null
  hidden: string[]
}

const { testLogin: text } = words

const ClaimsOf = (props: { title: string; about?: string; claims: Claims; isOpen?: boolean }) => (
  <details open={props.isOpen ?? false}>
    <summary>
      {props.title} {props.about && <span class="hint">{props.about}</span>}
    </summary>
    <Code text={JSON.stringify(props.claims, null, 2)} />
  </details>
)

const Result = ({ tested }: { tested: Tested }) => {
  const { refusal, id_token, access_token, userinfo, hidden } = tested
  if (refusal)
    return (
      <div class="notice warn" role="status">
        <Icon name="alert" />
        <div>
          <p>
            <strong>{text.refused}</strong>
          </p>
          <p>{refusal.error_description}</p>
          <p>
            <code>{refusal.error}</code>
          </p>
        </div>
      </div>
    )
  const about = ({ alg, typ }: Token) => `${typ} · ${alg}`
  return (
    <div class="trial" role="status">
      {id_token && <ClaimsOf title={text.idToken} about={about(id_token)} claims={id_token.claims} isOpen />}
      {access_token && (
        <ClaimsOf
          title={text.accessToken}
          about={about(access_token)}
          claims={access_token.claims}
          isOpen={!id_token}
        />
      )}
      {userinfo && <ClaimsOf title={text.userinfo} claims={userinfo} />}
      <p class="hint">{text.subject}</p>
      <p class="hint">{say(text.added, { claims: 'sid, auth_time, acr, amr' })}</p>
      {hidden.length > 0 && <p class="hint">{say(text.hidden, { claims: hidden.join(', ') })}</p>}
    </div>
  )
}

/**
 * Shows the claims that an application would get about a user. The caller is preselected if the caller is a
 * user of the application's organization.
 */
export const TestLogin = ({ client }: { client: Client }) => {
  const { client_id, organization_id } = client
  const isOwn = person.value?.organization_id === organization_id
  const self = useObject<UserAnswer>(
    isOwn && may('users:read') ? `/users/usr_${person.value?.sub}` : undefined,
  )
  const apis = useList<Api>(may('apis:read') && '/apis', { organization_id, limit: 100 })
  const [user, setUser] = useState<UserAnswer>()
  const [resource, setResource] = useState('')
  const [scope, setScope] = useState(client.scopes.join(' '))
  // The person may have chosen another user before the answer came.
  useEffect(() => setUser(user => user ?? self.data), [self.data])
  const scopesAt = ({ clients }: Api) => clients.find(each => each.client_id === client_id)?.scopes
  const usable = apis.items.filter(scopesAt)
  const options = withMore(apis, [
    ['', text.noApi],
    ...usable.map(api => [api.identifier, api.name] as const),
  ])
  const choose = (identifier: string) => {
    const api = usable.find(each => each.identifier === identifier)
    setResource(identifier)
    setScope([...client.scopes, ...((api && scopesAt(api)) ?? [])].join(' '))
  }
  const path = withQuery(`/clients/${encodeURIComponent(client_id)}/test-login`, {
    user_id: user?.id,
    scope: scope.trim(),
    resource,
  })
  /** The last result. It is shown only while the form names the person, scopes and API that it is about. */
  const [tested, setTested] = useState<{ path: string; result: Tested }>()
  const { run, problem } = useAction<Tested>(result => setTested({ path, result }))
  const test = () => {
    setTested(undefined)
    void run('GET', path)
  }
  if (!may('users:read')) return null
  return (
    <Card title={text.title} lead={text.lead}>
      <ApiForm method="GET" path={path} problem={problem} class="trial" onSubmit={test}>
        <PersonField organization_id={organization_id} label={text.person} user={user} onUser={setUser} />
        {(usable.length > 0 || apis.hasMore) && (
          <Choice
            label={text.api}
            value={resource}
            options={options.all}
            more={options.more}
            onValue={choose}
          />
        )}
        <Field
          name="scope"
          label={words.client.scopes}
          spellcheck={false}
          autocomplete="off"
          value={scope}
          onValue={setScope}
        />
        <Refused problem={problem} />
        <div class="buttons">
          <button type="submit" disabled={!user}>
            {text.show}
          </button>
        </div>
      </ApiForm>
      {tested?.path === path && (
        <>
          <hr />
          <Result tested={tested.result} />
        </>
      )}
      {user && <AsCurl text={curlOf('GET', path)} />}
    </Card>
  )
}
