"""Every encoder is a well-behaved scikit-learn transformer."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from losse import AdaptiveEncoder, FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder

ENCODERS = [LosseEncoder(), FourierEncoder(), ReLUEncoder(), TileEncoder()]


@parametrize_with_checks([*ENCODERS, LosseEncoder(5, inputs_per_axis=2, linear=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def all_but_the_order_of_rows():
    """What an adaptive encoder draws from its rows depends on their order."""
    for estimator, check in estimator_checks_generator(AdaptiveEncoder(5, n_stages=1)):
        if "sample_weight_equivalence" not in str(check):
            yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.parametrize(("estimator", "check"), list(all_but_the_order_of_rows()))
def test_an_encoder_that_draws_from_its_rows(estimator, check):
    check(estimator)
