import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { ApiForm } from '../api-form.tsx'
import { curlOf } from '../curl.ts'
import { Check, Field } from '../fields.tsx'
import { AsCurl, Card, Heading, Refused } from '../parts.tsx'
import { go } from '../router.ts'
import { say, words } from '../words.ts'

const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Generates a temporary password that has each kind of character. */
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
  const set = (change: Partial<typeof values>) => setValues({ ...values, ...change })
  const { run, problem, dialog } = useAction<UserAnswer>(({ id }) => go(`/console/users/${id}`))
  const submit = () => run('POST', '/users', say(words.common.added, { name: values.username }), values)
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
      onValue={value => set({ [name]: value })}
    />
  )
  return (
    <>
      <Heading title={words.users.add} back={{ href: '/console/users', label: words.nav.users }} />
      <ApiForm path="/users" problem={problem} class="form narrow" onSubmit={() => void submit()}>
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
            onValue={password => set({ password })}
          />
          <Check
            label={words.users.verified}
            checked={values.email_verified}
            onChecked={email_verified => set({ email_verified })}
          />
        </Card>
        <Refused problem={problem} />
        <div class="save-bar plain">
          <AsCurl text={curlOf('POST', '/users', { ...values, password: '$PASSWORD' })} />
          <a class="button" href="/console/users">
            {words.common.cancel}
          </a>
          <button type="submit" class="primary" disabled={dialog.isBusy}>
            {words.newUser.action}
          </button>
        </div>
      </ApiForm>
    </>
  )
}
