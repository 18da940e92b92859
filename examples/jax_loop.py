"""Act, learn a world model and imagine with it, in one compiled loop over many pendulums.

Run it with ``python examples/jax_loop.py --copies 1024``. Every copy of the pendulum begins in a
random state and is to be swung up. All copies share one world model, which begins empty. At each
step every copy imagines some plans with the model and acts by the best, and the model learns what
has happened to all copies. The whole run is one `jax.lax.scan`: nothing leaves the device.
"""

import argparse
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

import losse.jax
from losse.jax import Model

TORQUE = 2.0
SPEED = 8.0
BOUNDS = jnp.array([1.0, 1.0, SPEED, TORQUE])  # of cosine, sine, angular velocity and action


class Settings(NamedTuple):
    """How much to do."""

    copies: int = 64
    steps: int = 150
    plans: int = 32
    horizon: int = 20
    held: int = 5
    """Steps for which a plan holds each of its torques."""


def true_step(observation: jax.Array, action: jax.Array) -> jax.Array:
    """The pendulum of Gymnasium: the next (cosine, sine, angular velocity), after 0.05 s."""
    cosine, sine, velocity = observation
    velocity = velocity + 0.05 * (15.0 * sine + 3.0 * action)
    velocity = jnp.clip(velocity, -SPEED, SPEED)
    angle = jnp.arctan2(sine, cosine) + 0.05 * velocity
    return jnp.array([jnp.cos(angle), jnp.sin(angle), velocity])


def reward(observation: jax.Array, action: jax.Array) -> jax.Array:
    """Zero where the pendulum stands still upright, less elsewhere."""
    angle = jnp.arctan2(observation[..., 1], observation[..., 0])
    return -(angle**2) - 0.1 * observation[..., 2] ** 2 - 0.001 * action**2


def inputs(observation: jax.Array, action: jax.Array) -> jax.Array:
    """What the world model sees."""
    return jnp.concatenate([observation, action[..., None]], axis=-1)


def imagine(model: Model, observation: jax.Array, plans: jax.Array) -> jax.Array:
    """Sum of rewards that the model promises for each plan, (plans, horizon)."""

    def step(state: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        rewards = reward(state, actions)
        state = state + losse.jax.predict(model, inputs(state, actions))
        return jnp.clip(state, -BOUNDS[:3], BOUNDS[:3]), rewards

    start = jnp.broadcast_to(observation, (len(plans), 3))
    return jax.lax.scan(step, start, plans.T)[1].sum(axis=0)


def act(settings: Settings, model: Model, observation: jax.Array, key: jax.Array) -> jax.Array:
    """First torque of the best of some random plans."""
    shape = (settings.plans, settings.horizon // settings.held)
    plans = jax.random.uniform(key, shape, minval=-TORQUE, maxval=TORQUE)
    plans = jnp.repeat(plans, settings.held, axis=1)
    return plans[imagine(model, observation, plans).argmax(), 0]


def run(settings: Settings, key: jax.Array) -> tuple[Model, jax.Array]:
    """The model in the end, and the mean reward of all copies at each step."""

    def step(
        state: tuple[Model, jax.Array], key: jax.Array
    ) -> tuple[tuple[Model, jax.Array], jax.Array]:
        model, observations = state
        keys = jax.random.split(key, settings.copies)
        choose = jax.vmap(lambda observation, key: act(settings, model, observation, key))
        actions = choose(observations, keys)
        following = jax.vmap(true_step)(observations, actions)
        changes = following - observations
        model = losse.jax.accumulate(model, inputs(observations, actions), changes)
        model = losse.jax.leader(model)
        return (model, following), reward(observations, actions).mean()

    start, projection, *keys = jax.random.split(key, settings.steps + 2)
    angles = jax.random.uniform(start, (settings.copies,), minval=-jnp.pi, maxval=jnp.pi)
    observations = jnp.stack([jnp.cos(angles), jnp.sin(angles), 0 * angles], axis=1)
    model = losse.jax.init(
        projection, 4, 3, n_grids=8, n_bins=6, linear=True, scaling=(-BOUNDS, BOUNDS), ridge=1e-6
    )
    (model, _), rewards = jax.lax.scan(step, (model, observations), jnp.stack(keys))
    return model, rewards


def main() -> None:
    """Run the loop, and say what it has learned and how fast it was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in Settings._field_defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    settings = Settings(**vars(parser.parse_args()))
    loop = jax.jit(run, static_argnums=0).lower(settings, jax.random.key(0)).compile()
    begin = time.perf_counter()
    model, rewards = jax.block_until_ready(loop(jax.random.key(0)))
    seconds = time.perf_counter() - begin
    imagined = settings.copies * settings.steps * settings.plans * settings.horizon
    print(f"transitions learned: {int(model.memory.n_samples):,}, imagined: {imagined:,}")
    print(f"seconds: {seconds:.1f}")
    for first in range(0, settings.steps, max(1, settings.steps // 5)):
        part = rewards[first : first + max(1, settings.steps // 5)]
        print(f"mean reward from step {first}: {float(part.mean()):.2f}")


if __name__ == "__main__":
    main()
