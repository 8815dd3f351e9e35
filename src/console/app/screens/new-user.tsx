import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { Check, Field } from '../fields.tsx'
import { curlOf } from '../forms.tsx'
import { AsCurl, Card, Heading, Refused } from '../parts.tsx'
import { go } from '../router.ts'
import { show } from '../toast.tsx'
import { say, words } from '../words.ts'

const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Generates a temporary password with each kind of character. */
const newPassword = (): string =>
  `${[...crypto.getRandomValues(new Uint32Array(16))].map(n => letters[n % letters.length]).join('')}-Aa7`

/** Screen that creates a user. */
export const NewUserScreen = () => {
  const [values, setValues] = useState({
    username: '',
    email: '',
    first_name: '',
    last_name: '',
    password: newPassword(),
    email_verified: false,
  })
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const set = (change: Partial<typeof values>) => setValues({ ...values, ...change })
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      const { data } = await callApi<UserAnswer>('POST', '/users', { body: values })
      show(say(words.common.added, { name: data.username }))
      go(`/console/users/${data.id}`)
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  const field = (
    name: 'username' | 'email' | 'first_name' | 'last_name',
    label: string,
    type: 'text' | 'email' = 'text',
  ) => (
    <Field
      name={name}
      label={label}
      type={type}
      autocomplete="off"
      value={values[name]}
      problem={problem}
      required={name === 'username' || name === 'email'}
      onValue={value => set({ [name]: value })}
    />
  )
  return (
    <>
      <Heading title={words.users.add} back={{ href: '/console/users', label: words.nav.users }} />
      <form class="form narrow" onSubmit={event => void submit(event)}>
        {problem && !problem.details && <Refused problem={problem} />}
        <Card>
          {field('username', words.users.username)}
          {field('email', words.users.email, 'email')}
          <div class="pair">
            {field('first_name', words.users.firstName)}
            {field('last_name', words.users.lastName)}
          </div>
          <Field
            name="password"
            label={words.newUser.password}
            hint={words.newUser.passwordHint}
            autocomplete="off"
            spellcheck={false}
            copied
            value={values.password}
            problem={problem}
            onValue={password => set({ password })}
          />
          <Check
            label={words.users.verified}
            checked={values.email_verified}
            onChecked={email_verified => set({ email_verified })}
          />
        </Card>
        <div class="save-bar plain">
          <AsCurl text={curlOf('POST', '/users', { ...values, password: '$PASSWORD' })} />
          <a class="button" href="/console/users">
            {words.common.cancel}
          </a>
          <button type="submit" class="primary" disabled={isBusy}>
            {words.newUser.action}
          </button>
        </div>
      </form>
    </>
  )
}
