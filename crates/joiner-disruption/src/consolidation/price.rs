//! What the nodes that take others' place may be, so that the price is sure to fall.
//!
//! A launch lists many types, and the cloud picks. Only those stay on the list that are cheaper
//! even in the dearest offering that could come of it.

use joiner_model::{Launch, NanoDollars, Offering, OfferingIx, Problem, Requirement, TypeIx, keys};

use crate::fleet::Fleet;
use crate::why::Why;

const SPOT: &str = "spot";
const ON_DEMAND: &str = "on-demand";
const RESERVED: &str = "reserved";
/// How a launch is paid for, by preference.
const CAPACITY_TYPES: [&str; 3] = [RESERVED, SPOT, ON_DEMAND];
/// A spot node is followed by a single one only when this many types are cheaper: fewer, and one
/// step after the other would lead to the type that is interrupted most.
const SPOT_TYPES_MIN: usize = 15;

/// Narrows launches that take the place of members to what is sure to be cheaper.
///
/// # Errors
/// Why that leaves nothing.
pub(crate) fn settle(
    fleet: &Fleet<'_>,
    members: &[usize],
    launches: &mut [Launch],
) -> Result<(), Why> {
    let before = fleet.price(members);
    let after: NanoDollars = launches.iter().map(|launch| launch.price).sum();
    let n_launches = launches.len() as u64;
    for launch in launches.iter_mut() {
        // Several launches share what may be spent in proportion to what they cost.
        let most = if n_launches == 1 {
            before.get()
        } else if after.get() == 0 {
            before.get() / n_launches
        } else {
            let share = u128::from(before.get()) * u128::from(launch.price.get());
            u64::try_from(share / u128::from(after.get())).unwrap_or(u64::MAX)
        };
        let place = Place {
            fleet,
            members,
            alone: n_launches == 1,
            most,
        };
        place.narrow(launch, Why::NotCheaper { before, after })?;
    }
    Ok(())
}

/// A place to be taken.
struct Place<'a> {
    fleet: &'a Fleet<'a>,
    members: &'a [usize],
    /// There is one new node only.
    alone: bool,
    /// It must be cheaper than this.
    most: u64,
}

impl Place<'_> {
    fn narrow(&self, launch: &mut Launch, too_dear: Why) -> Result<(), Why> {
        let problem = self.fleet.problem;
        let all_spot = self.is_all_spot();
        let spot = sells(problem, launch, SPOT);
        let from_spot_to_spot = all_spot && spot;
        if from_spot_to_spot {
            if !self.fleet.settings.spot_to_spot {
                return Err(Why::SpotToSpotOff);
            }
            pin(launch, SPOT);
        }
        let open = std::mem::take(&mut launch.types);
        let cheap = |ty: &TypeIx| worst_price(problem, launch, *ty).is_some_and(|p| p < self.most);
        let mut types: Vec<TypeIx> = open.into_iter().filter(cheap).collect();
        self.drop_same(launch, &mut types);
        launch.types = types;
        if spot && !from_spot_to_spot && sells(problem, launch, ON_DEMAND) {
            pin(launch, SPOT);
        }
        rank(problem, launch);
        if from_spot_to_spot && self.members.len() == 1 {
            self.cut(launch)?;
        }
        if launch.types.is_empty() {
            return Err(too_dear);
        }
        // Whatever the policy: it lowers `minValues` for pods that would wait otherwise, not for money.
        match lacks_values(problem, launch, &launch.types) {
            Some(missing) => Err(Why::MinValues(missing.key().clone())),
            None => Ok(()),
        }
    }

    fn is_all_spot(&self) -> bool {
        let mut members = self.members.iter().map(|m| &self.fleet.members[*m]);
        members.all(|member| member.capacity_type.as_ref() == SPOT)
    }

    /// Keeps several nodes from becoming one of their own kind: that is better done by deleting
    /// the others.
    fn drop_same(&self, launch: &Launch, types: &mut Vec<TypeIx>) {
        if self.members.len() < 2 {
            return;
        }
        let problem = self.fleet.problem;
        let own_price = |ty: TypeIx| {
            let name = &problem[ty].name;
            let members = self.members.iter().map(|m| &self.fleet.members[*m]);
            let same = members.filter(|member| member.type_name == *name);
            same.filter_map(|member| member.price).min()
        };
        let is_below = |ty: TypeIx, most: NanoDollars| {
            worst_price(problem, launch, ty).is_some_and(|price| price < most.get())
        };
        if self.alone {
            if let Some(least) = types.iter().filter_map(|ty| own_price(*ty)).min() {
                types.retain(|ty| is_below(*ty, least));
            }
        } else {
            types.retain(|ty| own_price(*ty).is_none_or(|own| is_below(*ty, own)));
        }
    }

    /// Keeps the 15 cheapest types, or as many as `minValues` needs.
    fn cut(&self, launch: &mut Launch) -> Result<(), Why> {
        if launch.types.len() < SPOT_TYPES_MIN {
            return Err(Why::FewSpotTypes(launch.types.len()));
        }
        let enough = (SPOT_TYPES_MIN..=launch.types.len())
            .find(|n| lacks_values(self.fleet.problem, launch, &launch.types[..*n]).is_none());
        launch.types.truncate(enough.unwrap_or(SPOT_TYPES_MIN));
        Ok(())
    }
}

/// Offerings of a type that a launch leaves open.
fn open<'p>(
    problem: &'p Problem,
    launch: &'p Launch,
    ty: TypeIx,
) -> impl Iterator<Item = (u32, &'p Offering)> {
    let pool = &problem[launch.pool];
    let offerings = (0u32..).zip(&problem[ty].offerings);
    offerings.filter(move |(_, offering)| {
        let holds = |r: &Requirement| {
            let value = offering.labels.get(r.key());
            value.is_none_or(|value| r.has(value))
        };
        offering.available
            && launch.requirements.iter().all(holds)
            && pool.requirements.iter().all(holds)
    })
}

fn is_paid(offering: &Offering, capacity_type: &str) -> bool {
    let own = offering.labels.get(keys::CAPACITY_TYPE);
    own.is_some_and(|own| own.as_ref() == capacity_type)
}

fn sells(problem: &Problem, launch: &Launch, capacity_type: &str) -> bool {
    let mut types = launch.types.iter();
    types.any(|ty| open(problem, launch, *ty).any(|(_, o)| is_paid(o, capacity_type)))
}

/// The dearest offering that could come of launching a type.
fn worst_price(problem: &Problem, launch: &Launch, ty: TypeIx) -> Option<u64> {
    CAPACITY_TYPES.iter().find_map(|capacity_type| {
        let all = open(problem, launch, ty).filter(|(_, o)| is_paid(o, capacity_type));
        all.map(|(_, offering)| offering.price.get()).max()
    })
}

fn cheapest(problem: &Problem, launch: &Launch, ty: TypeIx) -> Option<(u64, OfferingIx)> {
    let offers = open(problem, launch, ty).map(|(ix, o)| (o.price.get(), OfferingIx(ix)));
    offers.min()
}

/// Leaves one capacity type open.
fn pin(launch: &mut Launch, capacity_type: &str) {
    let others = |r: &Requirement| r.key().as_ref() != keys::CAPACITY_TYPE;
    launch.requirements.retain(others);
    let only = Requirement::is(keys::CAPACITY_TYPE, capacity_type.into());
    launch.requirements.push(only);
    launch.requirements.sort_by(|a, b| a.key().cmp(b.key()));
}

/// Sorts the types that are still sold by price, and says anew which one is the cheapest.
fn rank(problem: &Problem, launch: &mut Launch) {
    let mut ranked: Vec<_> = (launch.types.iter())
        .filter_map(|ty| {
            let (price, offering) = cheapest(problem, launch, *ty)?;
            Some((price, &problem[*ty].name, *ty, offering))
        })
        .collect();
    ranked.sort();
    // An offering of the cheapest type that the solver chose stays, if it is as cheap as any.
    if let Some((price, _, ty, offering)) = ranked.first() {
        let (old, chosen) = launch.offering;
        let same = old == *ty
            && open(problem, launch, old).any(|(ix, o)| ix == chosen.0 && o.price.get() == *price);
        if !same {
            launch.offering = (*ty, *offering);
        }
        launch.price = NanoDollars::new(*price);
    }
    launch.types = ranked.into_iter().map(|(_, _, ty, _)| ty).collect();
}

/// The first requirement whose `minValues` these types do not meet.
fn lacks_values<'p>(
    problem: &'p Problem,
    launch: &Launch,
    types: &[TypeIx],
) -> Option<&'p Requirement> {
    let pool = &problem[launch.pool];
    pool.requirements.iter().find(|r| {
        let Some(needed) = r.min_values() else {
            return false;
        };
        let mut values: Vec<&str> = Vec::new();
        for ty in types {
            let ty = &problem[*ty];
            if r.key().as_ref() == keys::INSTANCE_TYPE {
                values.push(&ty.name);
                continue;
            }
            values.extend(
                ty.labels
                    .get(r.key())
                    .into_iter()
                    .flatten()
                    .map(AsRef::as_ref),
            );
            let sold = ty.offerings.iter().filter(|o| o.available);
            values.extend(
                sold.filter_map(|o| o.labels.get(r.key()))
                    .map(AsRef::as_ref),
            );
        }
        values.retain(|value| r.has(value));
        values.sort_unstable();
        values.dedup();
        values.len() < needed as usize
    })
}
